package inventory

import (
	"strconv"
	"strings"
	"testing"
)

func TestAPlaceIsCutWhereItIsLong(t *testing.T) {
	down := func(levels int) *place {
		p := root("hosts")
		for i := range levels {
			p = p.child("k" + strconv.Itoa(i))
		}
		return p
	}
	for _, tt := range []struct {
		p    *place
		want string
	}{
		{root("hosts"), "hosts"},
		{root("hosts").child("web 1").child("list").element(3), `hosts["web 1"].list[3]`},
		{down(9), "hosts.k0.k1.k2.k3.k4.k5.k6.k7.k8"},
		{down(10), "hosts.k0.k1.k2.k3.k4 …2 levels… .k7.k8.k9"},
		{down(500), "hosts.k0.k1.k2.k3.k4 …492 levels… .k497.k498.k499"},
		{root("hosts").child(strings.Repeat("a", 1<<16)).child("x"), `hosts["` + strings.Repeat("a", 60) + `"…].x`},
		{root(strings.Repeat("a", 1<<16)), `"` + strings.Repeat("a", 60) + `"…`},
	} {
		if got := tt.p.String(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}
