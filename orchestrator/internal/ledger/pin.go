package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/exocomp/exocomp/orchestrator"
)

// Pins returns the pins that f selects, by host and port.
func (l *Ledger) Pins(ctx context.Context, f orchestrator.PinFilter) ([]orchestrator.Pin, error) {
	var w where
	if !f.IncludeRetired {
		w.add(`retired_at IS NULL`)
	}
	if f.Workspace != "" {
		w.add(`id IN (SELECT pin FROM pin_user WHERE workspace = ?)`, f.Workspace)
	}
	return l.pins(ctx, w.String(), w.args...)
}

// PinsAt returns the live pins of an address, at most one a key type.
func (l *Ledger) PinsAt(ctx context.Context, host string, port int) ([]orchestrator.Pin, error) {
	return l.pins(ctx, ` WHERE host = ? AND port = ? AND retired_at IS NULL`, host, port)
}

func (l *Ledger) pins(ctx context.Context, clauses string, args ...any) ([]orchestrator.Pin, error) {
	var rows []pinRow
	err := l.read(ctx, "read pins", func(q querier) (err error) {
		rows, err = selectPins(ctx, q, clauses, args...)
		return err
	})
	out := make([]orchestrator.Pin, len(rows))
	for i, r := range rows {
		out[i] = r.Pin
	}
	return out, err
}

// AddPins records keys, found by job where one is named. A key that is pinned
// already only gains the users and, if it has none, the instance id. Another
// live key of the same type at the same address is a
// [orchestrator.CodeConflict].
func (l *Ledger) AddPins(ctx context.Context, job orchestrator.JobID, pins []orchestrator.Pin) error {
	return l.write(ctx, "add pins", func(t *tx) error {
		about := orchestrator.Event{}
		if job != "" {
			j, err := jobByID(ctx, t, job)
			if err != nil {
				return err
			}
			about = j.event("", "")
		}
		for _, p := range pins {
			if err := t.addPin(ctx, about, p, orchestrator.EventPinAdded); err != nil {
				return err
			}
		}
		return nil
	})
}

// RetirePins ends pins, whoever refers to them, and the admissions that rest on
// them. One that is not live is passed over.
func (l *Ledger) RetirePins(ctx context.Context, pins []orchestrator.Pin, reason string, by orchestrator.Peer) error {
	return l.write(ctx, "retire pins", func(t *tx) error {
		for _, p := range pins {
			old, found, err := livePin(ctx, t, p)
			if err != nil {
				return err
			}
			if !found {
				continue
			}
			if err := t.retirePin(ctx, orchestrator.Event{By: by}, old, reason); err != nil {
				return err
			}
		}
		return nil
	})
}

// RotatePin replaces the old pins of an address by a key that a person has
// confirmed. The new pin serves everybody who referred to an old one; their
// admissions end, since the host may be another.
func (l *Ledger) RotatePin(ctx context.Context, old []orchestrator.Pin, p orchestrator.Pin, by orchestrator.Peer) error {
	return l.write(ctx, "rotate pin", func(t *tx) error {
		about := orchestrator.Event{By: by}
		for _, o := range old {
			row, found, err := livePin(ctx, t, o)
			if err != nil {
				return err
			}
			if !found {
				continue
			}
			for _, u := range row.Users {
				if !slices.Contains(p.Users, u) {
					p.Users = append(slices.Clip(p.Users), u)
				}
			}
			if row.sameKey(p) {
				continue
			}
			if err := t.retirePin(ctx, about, row, "rotated to "+p.SHA256+" by "+who(by)); err != nil {
				return err
			}
		}
		p.Source = orchestrator.PinRotated
		return t.addPin(ctx, about, p, orchestrator.EventPinRotated)
	})
}

// PruneRetiredPins removes pins that were retired longer ago than
// [orchestrator.RetiredPinRetention], and returns how many.
func (l *Ledger) PruneRetiredPins(ctx context.Context) (n int, err error) {
	err = l.write(ctx, "prune pins", func(t *tx) (err error) {
		before := t.now.Add(-orchestrator.RetiredPinRetention)
		n, err = t.affect(ctx, `DELETE FROM pin WHERE retired_at < ?`, nanos(before))
		return err
	})
	return n, err
}

// addPin records p. Where that key is live already it gains p's users, and p's
// instance id if it has none. about says in which circumstances.
func (t *tx) addPin(ctx context.Context, about orchestrator.Event, p orchestrator.Pin, kind orchestrator.EventKind) error {
	if p.Port < 1 || p.Port > 65535 {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "pin of %s: %d is not a TCP port (1 to 65535)", p.Host, p.Port)
	}
	live, err := selectPins(ctx, t, ` WHERE host = ? AND port = ? AND key_type = ? AND retired_at IS NULL`, p.Host, p.Port, p.KeyType)
	if err != nil {
		return err
	}
	if len(live) > 0 {
		if !live[0].sameKey(p) {
			return orchestrator.Errorf(orchestrator.CodeConflict, "%s is pinned with %s, not with %s", p.HostPort(), live[0].SHA256, p.SHA256).
				WithHint("check the key out of band, then: exocomp host onboard --rotate HOST")
		}
		if live[0].InstanceID == "" && p.InstanceID != "" { // the inventory states it from now on
			err := t.exec(ctx, `UPDATE pin SET instance_id = ? WHERE id = ?`, p.InstanceID, live[0].id)
			if err != nil {
				return err
			}
		}
		return t.addPinUsers(ctx, live[0].id, p.Users)
	}
	p.AddedAt, p.RetiredAt, p.Retired = t.now, time.Time{}, ""
	id, err := t.insertPin(ctx, p)
	if err != nil {
		return err
	}
	if err := t.addPinUsers(ctx, id, p.Users); err != nil {
		return err
	}
	text := fmt.Sprintf("%s pinned with %s %s (%s)", p.HostPort(), p.KeyType, p.SHA256, p.Source)
	return t.pinEvent(ctx, about, kind, p, text)
}

// retirePin ends a live pin and its users' admissions.
func (t *tx) retirePin(ctx context.Context, about orchestrator.Event, p pinRow, reason string) error {
	err := t.exec(ctx, `UPDATE pin SET retired_at = ?, retired = ? WHERE id = ?`, nanos(t.now), reason, p.id)
	if err != nil {
		return err
	}
	for _, u := range p.Users {
		if err := t.endAdmission(ctx, u); err != nil {
			return err
		}
	}
	text := fmt.Sprintf("%s not pinned with %s %s any more: %s", p.HostPort(), p.KeyType, p.SHA256, reason)
	return t.pinEvent(ctx, about, orchestrator.EventPinRetired, p.Pin, text)
}

// leavePins ends the claim of about's workspace on pins, on all of its pins
// where the list is nil, and the admissions that rest on it. A pin that
// others refer to stays live for them.
func (t *tx) leavePins(ctx context.Context, about orchestrator.Event, pins []orchestrator.Pin, reason string) error {
	rows, err := selectPins(ctx, t, ` WHERE retired_at IS NULL AND id IN (SELECT pin FROM pin_user WHERE workspace = ?)`, about.Workspace)
	if err != nil {
		return err
	}
	for _, row := range rows {
		i := slices.IndexFunc(pins, row.sameKeyAndAddress)
		if pins != nil && i < 0 {
			continue
		}
		leaves := func(u orchestrator.PinUser) bool {
			return u.Workspace == about.Workspace &&
				(pins == nil || len(pins[i].Users) == 0 || slices.Contains(pins[i].Users, u))
		}
		if !slices.ContainsFunc(row.Users, func(u orchestrator.PinUser) bool { return !leaves(u) }) {
			if err := t.retirePin(ctx, about, row, reason); err != nil {
				return err
			}
			continue
		}
		for _, u := range row.Users {
			if !leaves(u) {
				continue
			}
			if err := t.endAdmission(ctx, u); err != nil {
				return err
			}
			err := t.exec(ctx, `DELETE FROM pin_user WHERE pin = ? AND workspace = ? AND host = ?`, row.id, u.Workspace, u.Host)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// pinEvent appends an event for each user of a pin, or one where it has none.
func (t *tx) pinEvent(ctx context.Context, about orchestrator.Event, kind orchestrator.EventKind, p orchestrator.Pin, text string) error {
	e := about
	e.Kind, e.State, e.Message = kind, "", text
	users := p.Users
	if len(users) == 0 {
		users = []orchestrator.PinUser{{Workspace: about.Workspace}}
	}
	for _, u := range users {
		e.Workspace, e.Host = u.Workspace, u.Host
		if err := t.event(ctx, e); err != nil {
			return err
		}
	}
	return nil
}
