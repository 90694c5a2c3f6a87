package hostkeys

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/fault"
)

// Store keeps pins.
type Store interface {
	// Pins returns the pins that the filter selects, whoever refers to them.
	Pins(ctx context.Context, filter orchestrator.PinFilter) ([]orchestrator.Pin, error)
	// ChangePins makes the changes and records their events, all or nothing.
	ChangePins(ctx context.Context, c orchestrator.PinChanges) error
}

// Pinner pins the keys of hosts, or holds them against their pins.
type Pinner struct {
	Store   Store
	Options Options
}

// Request asks for hosts to be pinned.
type Request struct {
	Run    orchestrator.RunID    // empty for a standalone job
	Step   orchestrator.StepKind // likewise
	Job    orchestrator.JobID
	By     orchestrator.Peer // who asked
	Hosts  []HostWant
	Rotate bool // accept other keys than the pinned ones

	// Again and Corrected are the commands that have it all done once more: as
	// things are, and after the configuration was corrected; or empty.
	Again, Corrected string
}

// Pin scans the hosts, decides and records. It may be repeated: a key that is
// pinned is only held against its pin.
//
// The report has a line for every host of the request. Where a host fails, the
// others are recorded all the same, and the error names every failure; its code
// is [orchestrator.CodeRefused] if a key is not the expected one. An error
// without a report is the store's.
func (p *Pinner) Pin(ctx context.Context, r Request) ([]orchestrator.HostReport, error) {
	// All of them in one read: a fleet has as many hosts as pins.
	pins, err := p.Store.Pins(ctx, orchestrator.PinFilter{})
	if err != nil {
		return nil, fmt.Errorf("read pins: %w", err)
	}
	scans := p.scan(ctx, sites(r.Hosts, pins), r.Rotate)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("scan host keys: %w", err)
	}
	d := Decide(r.Hosts, pins, scans, r.Rotate)
	if err := p.record(ctx, r, d); err != nil {
		return nil, err
	}
	return report(d), r.failure(d)
}

// scan asks each site once; one that has no key of the expected types is asked
// again for whatever it offers, so that a person can be told both fingerprints.
func (p *Pinner) scan(ctx context.Context, all []*site, rotate bool) []Result {
	targets := make([]Target, len(all))
	for i, s := range all {
		targets[i] = Target{Host: s.place.host, Port: s.place.port, Types: s.types(rotate)}
	}
	results := Scan(ctx, targets, p.Options)
	var again []Target
	var index []int
	for i, r := range results {
		if errors.Is(r.Err, ErrNotOffered) && r.Target.Types != nil {
			again = append(again, Target{Host: r.Target.Host, Port: r.Target.Port})
			index = append(index, i)
		}
	}
	for i, r := range Scan(ctx, again, p.Options) {
		results[index[i]] = r
	}
	return results
}

func (p *Pinner) record(ctx context.Context, r Request, d Decision) error {
	fault.Point(fault.BeforePinStore, string(r.Job))
	c := orchestrator.PinChanges{Job: r.Job, By: r.By, Retire: d.Retire, Rotate: d.Rotate, Add: d.Add}
	for _, k := range d.Changed {
		c.Events = append(c.Events, orchestrator.Event{
			Kind:      orchestrator.EventPinChanged,
			Workspace: k.Want.Workspace,
			Run:       r.Run,
			Step:      r.Step,
			Job:       r.Job,
			Host:      k.Want.Name,
			Warning:   true,
			Message:   fmt.Sprintf("%s offers %s, pinned is %s", k.Pin.HostPort(), k.Seen, k.Pin.SHA256),
			By:        r.By,
		})
	}
	for _, k := range d.Refused {
		c.Events = append(c.Events, orchestrator.Event{
			Kind:      orchestrator.EventPinRefused,
			Workspace: k.Want.Workspace,
			Run:       r.Run,
			Step:      r.Step,
			Job:       r.Job,
			Host:      k.Want.Name,
			Warning:   true,
			Message:   fmt.Sprintf("%s offers %s, exocomp_host_key states %s", placeOf(k.Want.Host, k.Want.Port), k.Seen, k.Want.stated()),
			By:        r.By,
		})
	}
	if c.Empty() {
		return nil
	}
	if err := p.Store.ChangePins(ctx, c); err != nil {
		return fmt.Errorf("record pins: %w", err)
	}
	return nil
}

func report(d Decision) []orchestrator.HostReport {
	reports := make([]orchestrator.HostReport, len(d.Hosts))
	for i, v := range d.Hosts {
		h := orchestrator.HostReport{
			Name:    v.Want.Name,
			Address: placeOf(v.Want.Host, v.Want.Port).String(),
			State:   orchestrator.HostPinned,
			Message: v.Message,
		}
		if v.Err != nil {
			h.State, h.Message = orchestrator.HostUnreachable, orchestrator.FailureOf(v.Err).Message
			if errors.Is(v.Err, orchestrator.ErrRefused) {
				h.State = orchestrator.HostFailed
			}
		}
		reports[i] = h
	}
	return reports
}

// failure returns nil, or one error about every host that failed, with what to
// do about the worst of it: one command rotates all changed ones.
func (r Request) failure(d Decision) error {
	var lines, changed, silent []string
	e := &orchestrator.Error{Code: orchestrator.CodeFailed}
	for _, v := range d.Hosts {
		if v.Err == nil {
			continue
		}
		f := orchestrator.FailureOf(v.Err)
		lines = append(lines, f.Message)
		switch {
		case v.Changed:
			changed = append(changed, v.Want.ref())
		case f.Code != orchestrator.CodeRefused:
			silent = append(silent, placeOf(v.Want.Host, v.Want.Port).String())
		case f.Hint != "":
			e.Hint = then(f.Hint, "; then: ", r.Corrected)
		}
		if f.Code == orchestrator.CodeRefused {
			e.Code = f.Code
		}
	}
	if len(lines) == 0 {
		return nil
	}
	e.Message = strings.Join(lines, "\n")
	switch {
	case len(changed) > 0:
		rotate := "check it out of band, then: exocomp host onboard --rotate " + strings.Join(changed, " ")
		if r.Run == "" {
			e.Hint = rotate
		} else {
			e.Hint = then(rotate, " --wait && ", r.Again)
		}
	case e.Hint == "" && len(silent) > 0:
		e.Hint = then("look whether an SSH server answers at "+few(silent), "; then: ", r.Again)
	}
	return e
}

// then adds to a hint the command to go on with, where there is one.
func then(hint, by, command string) string {
	if command == "" {
		return hint
	}
	return hint + by + command
}

// few joins the first entries of a list.
func few(list []string) string {
	const most = 3
	if len(list) <= most {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
}
