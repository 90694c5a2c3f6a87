package tofu

import "slices"

// Lost is a create that may have happened without being saved.
type Lost struct {
	PlannedCreate
	ID string // where the journal knows it
}

// Compare tells which creates of an interrupted apply the state lacks. After a
// crash on the same boot the journal says which creates were started. After
// another boot, whose last lines may never have reached the disk, and where it is
// torn, it proves nothing, and every planned create counts.
//
// A create that the provider itself reported as failed is not lost. The create
// half of a replacement is missing while the state still holds the object that
// was to be replaced.
func Compare(planned []PlannedCreate, journal Journal, sameBoot bool, state State) []Lost {
	proves := sameBoot && !journal.Torn
	var lost []Lost
	for _, p := range planned {
		entry, started := newest(journal, p.Address)
		if proves && (!started || entry.Errored) {
			continue
		}
		if id, ok := state[p.Address]; ok && (p.PriorID == "" || id != p.PriorID) {
			continue
		}
		lost = append(lost, Lost{PlannedCreate: p, ID: entry.ID})
	}
	return lost
}

// newest returns the journal's newest create of an address.
func newest(j Journal, address string) (JournalCreate, bool) {
	for _, c := range slices.Backward(j.Creates) {
		if c.Address == address {
			return c, true
		}
	}
	return JournalCreate{}, false
}
