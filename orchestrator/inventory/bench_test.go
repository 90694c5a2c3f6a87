package inventory

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// fleet is an output `ansible_inventory` of n hosts in a few groups.
func fleet(n int) map[string]Output {
	var b strings.Builder
	b.WriteString(`{"all":{"vars":{"ansible_user":"debian","domain":"example.com"},"children":{`)
	for g := range 10 {
		if g > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"role%d":{"vars":{"role":"role%d","tags":["a","b"]},"hosts":{`, g, g)
		for i := g; i < n; i += 10 {
			if i > g {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `"host%05d":{"ansible_host":"10.%d.%d.%d","ansible_port":22,"id":%d,"labels":{"zone":"z%d","env":"prod"}}`,
				i, i>>16, i>>8&255, i&255, i, i%3)
		}
		b.WriteString(`}}`)
	}
	b.WriteString(`}}}`)
	return map[string]Output{"ansible_inventory": {Value: json.RawMessage(b.String())}}
}

// BenchmarkDerive derives, validates and renders; the goal is 25 ms for 1,000
// hosts and 250 ms for 10,000.
func BenchmarkDerive(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		outputs := fleet(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				inv, err := Derive("edge", outputs)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := Render(inv); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkEffective computes what Ansible sees of every host.
func BenchmarkEffective(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		inv, err := Derive("edge", fleet(n))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if got := len(Effective(inv)); got != n {
					b.Fatalf("%d hosts", got)
				}
			}
		})
	}
}
