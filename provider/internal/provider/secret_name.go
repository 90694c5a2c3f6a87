package provider

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// secretWords make a secret of every name that holds one of them.
var secretWords = []string{"password", "passwd", "passphrase", "secret", "credential", "api_key", "apikey", "private_key"}

// looksSecret reports whether a variable of that name probably holds a secret.
// The path of a key file is none, but for how its name ends.
func looksSecret(name string) bool {
	name = strings.ReplaceAll(strings.ToLower(name), "-", "_")
	if strings.HasSuffix(name, "private_key_file") {
		return false
	}
	for _, word := range secretWords {
		if strings.Contains(name, word) {
			return true
		}
	}
	for _, word := range []string{"token", "pass"} {
		if name == word || strings.HasSuffix(name, "_"+word) {
			return true
		}
	}
	return false
}

// maxSecretNames bounds how many places are named one by one.
const maxSecretNames = 20

// secretNames finds names of variables that look like a secret's, in values that
// need not be known.
type secretNames struct {
	attribute string
	diags     diag.Diagnostics
	more      int // places beyond maxSecretNames
}

// place is where a value stands: for OpenTofu, which shows the line, and as text.
type place struct {
	at   path.Path
	text string
}

func rootPlace(attribute string) place { return place{path.Root(attribute), attribute} }

// member returns the place of an object's attribute or a map's element.
func (p place) member(in tftypes.Value, name string) place {
	at := p.at.AtMapKey(name)
	if in.Type().Is(tftypes.Object{}) {
		at = p.at.AtName(name)
	}
	return place{at, p.text + "[" + strconv.Quote(name) + "]"}
}

func (p place) element(i int) place {
	return place{p.at.AtListIndex(i), fmt.Sprintf("%s[%d]", p.text, i)}
}

// each calls fn for the members of v in order; a value that is no known object
// or map has none.
func each(v tftypes.Value, fn func(name string, v tftypes.Value)) {
	m, _ := members(v)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		fn(name, m[name])
	}
}

// variables looks at names of variables, at any depth.
func (s *secretNames) variables(v tftypes.Value, p place) {
	each(v, func(name string, value tftypes.Value) {
		at := p.member(v, name)
		if looksSecret(name) && !value.Type().Is(tftypes.Bool) { // `password_authentication = false` is none
			s.add(at)
			return
		}
		s.variables(value, at)
	})
	list, _ := elements(v)
	for i, value := range list {
		s.variables(value, p.element(i))
	}
}

// hostMap looks at a map of host names to variables: a host may be called as it
// likes.
func (s *secretNames) hostMap(v tftypes.Value, p place) {
	each(v, func(name string, vars tftypes.Value) { s.variables(vars, p.member(v, name)) })
}

// groups looks at a map of group names to groups, as an inventory tree is one.
func (s *secretNames) groups(v tftypes.Value, p place) {
	each(v, func(name string, group tftypes.Value) {
		at := p.member(v, name)
		each(group, func(section string, value tftypes.Value) {
			below := at.member(group, section)
			switch section {
			case "hosts":
				s.hostMap(value, below)
			case "children":
				s.groups(value, below)
			default:
				s.variables(value, below)
			}
		})
	})
}

func (s *secretNames) add(p place) {
	if s.diags.ErrorsCount() == maxSecretNames {
		s.more++
		return
	}
	s.diags.AddAttributeError(p.at, "Secret in "+s.attribute,
		p.text+" is named like a secret, and what stands in "+s.attribute+" is written in clear to plan and state.\n\n"+
			"Next: give it in secrets_wo, which is written nowhere and reaches the playbook as an environment variable "+
			"(`lookup('env', 'NAME')`); if it is no secret, give it another name.")
}

// found returns an error for each place.
func (s *secretNames) found() diag.Diagnostics {
	if s.more > 0 {
		s.diags.AddError("Secrets in "+s.attribute, fmt.Sprintf("%d more names look like secrets.", s.more))
	}
	return s.diags
}
