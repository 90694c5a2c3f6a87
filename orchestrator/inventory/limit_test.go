package inventory

import (
	"strings"
	"testing"
)

func TestALimitOfNamesIsUnderstood(t *testing.T) {
	hosts := []Host{
		{Name: "web1", Groups: []string{"edge", "web"}},
		{Name: "web2", Groups: []string{"edge", "old", "web"}},
		{Name: "db1", Groups: []string{"db", "edge"}},
	}
	for limit, want := range map[string]string{
		"web1":         "web1",
		"web":          "web1 web2",
		"web,db1":      "web1 web2 db1",
		"web:db":       "web1 web2 db1",
		"web:!web2":    "web1",
		"!old":         "web1 db1",
		"web,&old":     "web2",
		"tf:edge":      "web1 web2 db1",
		"tf:edge:&web": "web1 web2",
		"all":          "web1 web2 db1",
		"web1, db1":    "web1 db1",
		"nobody":       "",
		"":             "web1 web2 db1",
	} {
		left, ok := Limited(hosts, limit)
		var names []string
		for _, h := range left {
			names = append(names, h.Name)
		}
		if got := strings.Join(names, " "); !ok || got != want {
			t.Errorf("--limit %q leaves %q, %v; want %q", limit, got, ok, want)
		}
	}
	for _, limit := range []string{"web*", "~web.", "web[0]", "@hosts", "web1:2222:[x]", "!!web", "ungrouped"} {
		if left, ok := Limited(hosts, limit); ok || len(left) != len(hosts) {
			t.Errorf("--limit %q leaves %d hosts, %v; want all and false", limit, len(left), ok)
		}
	}
}
