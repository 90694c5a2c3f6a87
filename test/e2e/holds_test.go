package e2e

// holds is one assertion of a gate. It shows as a line of its own, which
// provision-converge-gate.sh prints; where it does not hold, detail says why.
func (s *site) holds(ok bool, what string, detail ...any) {
	s.t.Helper()
	if ok {
		s.t.Logf("holds: %s", what)
		return
	}
	s.t.Errorf("does not hold: %s\n%+v", what, detail)
}
