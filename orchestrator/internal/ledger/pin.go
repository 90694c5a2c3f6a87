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

// ChangePins retires, rotates and adds pins, in this order. A pin to retire or
// to rotate that is not live is passed over. A key to add that is pinned already
// only gains the users and, if it has none, the instance id; another live key of
// the same type at the same address is a [orchestrator.CodeConflict].
//
// A retired pin ends for everybody who refers to it, and with it the admissions
// that rest on it. A rotated one's successor serves everybody who referred to
// it; their admissions end, since the host may be another.
func (l *Ledger) ChangePins(ctx context.Context, c orchestrator.PinChanges) error {
	return l.write(ctx, "change pins", func(t *tx) error {
		about := orchestrator.Event{}
		if c.Job != "" {
			j, err := jobByID(ctx, t, c.Job)
			if err != nil {
				return err
			}
			about = j.event("", "")
		}
		about.By = c.By
		for _, e := range c.Events {
			if err := t.event(ctx, e); err != nil {
				return err
			}
		}
		for _, r := range c.Retire {
			if err := t.retirePins(ctx, about, r); err != nil {
				return err
			}
		}
		for _, r := range c.Rotate {
			if err := t.rotatePins(ctx, about, r); err != nil {
				return err
			}
		}
		for _, p := range c.Add {
			if err := t.addPin(ctx, about, p, orchestrator.EventPinAdded); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *tx) retirePins(ctx context.Context, about orchestrator.Event, r orchestrator.PinRetirement) error {
	for _, p := range r.Pins {
		old, found, err := livePin(ctx, t, p)
		if err != nil {
			return err
		}
		if !found {
			continue
		}
		if err := t.retirePin(ctx, about, old, r.Reason); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) rotatePins(ctx context.Context, about orchestrator.Event, r orchestrator.PinRotation) error {
	p := r.New
	for _, o := range r.Old {
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
		if err := t.retirePin(ctx, about, row, "rotated to "+p.SHA256+" by "+who(about.By)); err != nil {
			return err
		}
	}
	p.Source = orchestrator.PinRotated
	return t.addPin(ctx, about, p, orchestrator.EventPinRotated)
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
	p.Host = pinHost(p.Host)
	live, err := selectPins(ctx, t, livePinOf, p.Host, p.Port, p.KeyType)
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
