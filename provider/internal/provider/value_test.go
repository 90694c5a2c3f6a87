package provider

import (
	"math/big"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Shorthands for values of the protocol.
func text(s string) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }

func number(t *testing.T, s string) tftypes.Value {
	t.Helper()
	n, _, err := big.ParseFloat(s, 10, 512, big.ToNearestEven)
	if err != nil {
		t.Fatal(err)
	}
	return tftypes.NewValue(tftypes.Number, n)
}

func object(members map[string]tftypes.Value) tftypes.Value {
	t := map[string]tftypes.Type{}
	for name, v := range members {
		t[name] = v.Type()
	}
	return tftypes.NewValue(tftypes.Object{AttributeTypes: t}, members)
}

func tuple(elements ...tftypes.Value) tftypes.Value {
	t := []tftypes.Type{}
	for _, v := range elements {
		t = append(t, v.Type())
	}
	return tftypes.NewValue(tftypes.Tuple{ElementTypes: t}, elements)
}

type obj = map[string]tftypes.Value

func TestDocument(t *testing.T) {
	for want, v := range map[string]tftypes.Value{
		`null`:                         tftypes.NewValue(tftypes.String, nil),
		`true`:                         tftypes.NewValue(tftypes.Bool, true),
		`12345678901234567890123`:      number(t, "12345678901234567890123"),
		`0.1`:                          number(t, "0.1"),
		`-2.5`:                         number(t, "-2.5"),
		`10000000000000000000000`:      number(t, "1e22"),
		`"<a> & \"b\" \u0007 {{ c }}"`: text("<a> & \"b\" \a {{ c }}"),
		`[1,"a",null]`:                 tuple(number(t, "1"), text("a"), tftypes.NewValue(tftypes.String, nil)),
		`{"a":{"c":[]},"b":"x"}`:       object(obj{"b": text("x"), "a": object(obj{"c": tuple()})}),
		`{"one":"1","two":"2"}`:        tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, obj{"two": text("2"), "one": text("1")}),
		`["a"]`:                        tftypes.NewValue(tftypes.List{ElementType: tftypes.String}, []tftypes.Value{text("a")}),
	} {
		got, err := document(v)
		if err != nil || string(got) != want {
			t.Errorf("got %s, %v; want %s", got, err, want)
		}
	}
	if doc, err := document(object(obj{"a": tftypes.NewValue(tftypes.String, tftypes.UnknownValue)})); err == nil {
		t.Errorf("an unknown value is %s", doc)
	}
}

func TestLooksSecret(t *testing.T) {
	for name, want := range map[string]bool{
		"ansible_password": true, "ansible_become_pass": true, "ansible_become_password": true, "pass": true,
		"DB_PASSWD": true, "client-secret": true, "secretary": true, "api_token": true, "token": true, "Token": true,
		"aws_api_key": true, "tls_private_key": true, "passphrase": true, "credentials": true,
		"ansible_ssh_private_key_file": false, "deploy_private_key_file": false, "tokens_per_second": false, "tokenizer": false,
		"compass": false, "passive": false, "ssh_key": false, "keys": false, "bypass": false,
	} {
		if got := looksSecret(name); got != want {
			t.Errorf("looksSecret(%q) = %t", name, got)
		}
	}
}

func TestIsTree(t *testing.T) {
	unknown := tftypes.NewValue(tftypes.DynamicPseudoType, tftypes.UnknownValue)
	host := object(obj{"ansible_host": text("192.0.2.1")})
	for name, test := range map[string]struct {
		value tftypes.Value
		want  bool
	}{
		"all":                    {object(obj{"all": object(obj{})}), true},
		"groups":                 {object(obj{"web": object(obj{"hosts": object(obj{"web1": host})}), "db": object(obj{})}), true},
		"hosts":                  {object(obj{"web1": host}), false},
		"hosts without vars":     {object(obj{"web1": object(obj{}), "web2": object(obj{})}), false},
		"group and host":         {object(obj{"web": object(obj{"hosts": object(obj{})}), "web1": host}), false},
		"host that is called so": {object(obj{"hosts": host}), false},
		"nothing":                {object(obj{}), false},
		"text":                   {text("x"), false},
		"list":                   {tuple(host), false},
		"a group not known yet":  {object(obj{"web": object(obj{"vars": object(obj{})}), "db": unknown}), true},
		"a host not known yet":   {object(obj{"web1": host, "web2": unknown}), false},
	} {
		if got := isTree(test.value); got != test.want {
			t.Errorf("%s: %t, want %t", name, got, test.want)
		}
	}
}

func TestManySecretsAreCounted(t *testing.T) {
	hosts := obj{}
	for i := range maxSecretNames + 5 {
		hosts[string(rune('a'+i))] = object(obj{"password": text("x")})
	}
	names := secretNames{attribute: "inventory"}
	names.hostMap(object(hosts), rootPlace("inventory"))
	if found := names.found(); found.ErrorsCount() != maxSecretNames+1 || names.more != 5 {
		t.Errorf("%d errors, %d more", found.ErrorsCount(), names.more)
	}
}

func TestRevision(t *testing.T) {
	if r := revision(nil, ""); r != "" {
		t.Errorf("nothing is %q", r)
	}
	seen := map[string]bool{}
	for _, r := range []string{
		revision(nil, "1"), revision(map[string]string{"a": "1"}, ""), revision(map[string]string{"a": "1"}, "1"),
		revision(map[string]string{"1": "a"}, ""), revision(map[string]string{"a": "1", "b": ""}, ""),
	} {
		if seen[r] {
			t.Errorf("two are %s", r)
		}
		seen[r] = true
	}
}
