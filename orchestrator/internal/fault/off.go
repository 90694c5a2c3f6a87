//go:build !faultpoints

package fault

// Enabled reports whether this binary was built with fault points.
const Enabled = false

// Point does nothing in an ordinary build.
func Point(name, detail string) {}
