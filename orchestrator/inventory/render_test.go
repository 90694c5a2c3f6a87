package inventory

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/inventory/inventorytest"
)

func TestRenderShape(t *testing.T) {
	inv := mustTree(t, `{"all":{"vars":{"v":"{{ x }}"},"children":{"web":{"hosts":{"web1":{"ansible_host":"192.0.2.1","ansible_port":2222}},
		"children":{"eu":{"hosts":{"web1":{}}}}},"db":{"children":{"eu":{}}}}}}`)
	want := `{
  "all": {
    "hosts": {
      "web1": {"ansible_host": "192.0.2.1", "ansible_port": 2222}
    },
    "vars": {"v": {"__ansible_unsafe": "{{ x }}"}},
    "children": {
      "db": {
        "hosts": {},
        "children": {
          "eu": {
            "hosts": {
              "web1": {}
            }
          }
        }
      },
      "edge": {
        "hosts": {
          "web1": {}
        }
      },
      "tf": {"hosts": {}},
      "web": {
        "hosts": {
          "web1": {}
        },
        "children": {
          "eu": {}
        }
      }
    }
  }
}
`
	got := mustRender(t, inv)
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if d := Digest([]byte(got)); !strings.HasPrefix(d, "sha256:") || len(d) != 71 {
		t.Errorf("digest %q", d)
	}
}

func TestRenderDoesNotDependOnSpelling(t *testing.T) {
	a := mustRender(t, mustTree(t, `{"all":{"hosts":{"a":{"x":1,"y":"\u00e9"},"b":{}}}}`))
	b := mustRender(t, mustTree(t, `{ "all": {"hosts": {"b":null, "a": {"y":"é", "x":1}}} }`))
	if a != b {
		t.Errorf("two spellings differ:\n%s\n%s", a, b)
	}
}

func TestRenderSize(t *testing.T) {
	var b strings.Builder
	for i := range 160000 {
		fmt.Fprintf(&b, `,"a-host-with-quite-a-long-name-%06d.example.com":{}`, i)
	}
	inv, err := tree(`{"all":{"hosts":{` + b.String()[1:] + `}}}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Render(inv); !errors.Is(err, orchestrator.ErrInvalid) || !strings.Contains(err.Error(), "16 MiB") {
		t.Errorf("error %v", err)
	}
}

func TestParseRoundTrip(t *testing.T) {
	for name, source := range inventorytest.Valid {
		t.Run(name, func(t *testing.T) { roundTrip(t, mustTree(t, source)) })
	}
}

// roundTrip holds that what is rendered reads back as the same inventory.
func roundTrip(t *testing.T, inv *Inventory) {
	t.Helper()
	first := mustRender(t, inv)
	back, err := Parse(inv.Workspace, []byte(first))
	if err != nil {
		t.Fatalf("parse: %v\n%s", err, first)
	}
	if second := mustRender(t, back); second != first {
		t.Fatalf("rendered again:\n%s\nwas\n%s", second, first)
	}
	if a, b := fmt.Sprint(Effective(inv)), fmt.Sprint(Effective(back)); a != b {
		t.Fatalf("effective variables\n%s\nwere\n%s", b, a)
	}
	assertInert(t, []byte(first))
}

// assertInert holds that no string Ansible could evaluate stands unmarked.
func assertInert(t *testing.T, file []byte) {
	t.Helper()
	var doc any
	if err := json.Unmarshal(file, &doc); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, file)
	}
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, e := range v {
				if k == unsafeKey {
					if len(v) != 1 {
						t.Errorf("a mark among other keys: %v", v)
					}
					continue
				}
				if IsTemplate(k) {
					t.Errorf("a template in a key: %q", k)
				}
				visit(e)
			}
		case []any:
			for _, e := range v {
				visit(e)
			}
		case string:
			for _, marker := range []string{"{{", "{%", "{#"} {
				if strings.Contains(v, marker) {
					t.Errorf("an unmarked template: %q", v)
				}
			}
		}
	}
	visit(doc)
}

func TestParseRefuses(t *testing.T) {
	rendered := mustRender(t, mustTree(t, `{"all":{"hosts":{"a":{"x":"{{ y }}"}}}}`))
	for name, file := range map[string]string{
		"empty":                  ``,
		"cut short":              rendered[:len(rendered)/2],
		"no inventory":           `[]`,
		"another tool's":         `{"all":{"hosts":{"a":{}}}}`,
		"no group of that name":  strings.ReplaceAll(rendered, `"edge"`, `"other"`),
		"a host outside":         strings.Replace(rendered, `"a": {}`, ``, 1),
		"another top-level key":  strings.Replace(rendered, `{`, `{"x": {}, `, 1),
		"a variable that steers": strings.Replace(rendered, `"x": {"__ansible_unsafe": "{{ y }}"}`, `"ansible_ssh_args": "x"`, 1),
		"a vault":                strings.Replace(rendered, `__ansible_unsafe`, `__ansible_vault`, 1),
		"another mark":           strings.Replace(rendered, `"{{ y }}"}`, `"{{ y }}", "z": 1}`, 1),
	} {
		if file == rendered {
			t.Fatalf("%s: the file was not changed", name)
		}
		if _, err := Parse("edge", []byte(file)); !errors.Is(err, orchestrator.ErrInvalid) {
			t.Errorf("%s: error %v, want one of code invalid\n%s", name, err, file)
		}
	}
	if _, err := Parse("tf", []byte(rendered)); !errors.Is(err, orchestrator.ErrInvalid) {
		t.Errorf("workspace tf: %v", err)
	}
}
