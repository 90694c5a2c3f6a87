package hostkeys

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/internal/fault"
)

// Store keeps pins. Each method commits its change and its event together.
type Store interface {
	// PinsAt returns the matched pins of an address, whoever refers to them.
	PinsAt(ctx context.Context, host string, port int) ([]orchestrator.Pin, error)
	// AddPins records new pins; to one that is matched already it adds the
	// users, and the instance id.
	AddPins(ctx context.Context, job orchestrator.JobID, pins []orchestrator.Pin) error
	// RetirePins ends pins for everybody who refers to them.
	RetirePins(ctx context.Context, pins []orchestrator.Pin, reason string, by orchestrator.Peer) error
	// RotatePin retires the old pins and records the new one.
	RotatePin(ctx context.Context, old []orchestrator.Pin, pin orchestrator.Pin, by orchestrator.Peer) error
	// AppendEvent records that a scan met another key than the pinned one.
	AppendEvent(ctx context.Context, e orchestrator.Event) error
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
}

// Pin scans the hosts, decides and records. It may be repeated: a key that is
// pinned is only held against its pin.
//
// The report has a line for every host of the request. Where a host fails, the
// others are recorded all the same, and the error names every failure; its code
// is [orchestrator.CodeRefused] if a key is not the expected one. An error
// without a report is the store's.
func (p *Pinner) Pin(ctx context.Context, r Request) ([]orchestrator.HostReport, error) {
	pins, err := p.load(ctx, r.Hosts)
	if err != nil {
		return nil, err
	}
	scans := p.scan(ctx, sites(r.Hosts, pins), r.Rotate)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("scan host keys: %w", err)
	}
	d := Decide(r.Hosts, pins, scans, r.Rotate)
	if err := p.record(ctx, r, d); err != nil {
		return nil, err
	}
	return report(d), failure(d)
}

func (p *Pinner) load(ctx context.Context, wants []HostWant) ([]orchestrator.Pin, error) {
	var pins []orchestrator.Pin
	for _, s := range sites(wants, nil) {
		at, err := p.Store.PinsAt(ctx, s.place.host, s.place.port)
		if err != nil {
			return nil, fmt.Errorf("read pins of %s: %w", s.place, err)
		}
		pins = append(pins, at...)
	}
	return pins, nil
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
	for _, c := range d.Changed {
		err := p.Store.AppendEvent(ctx, orchestrator.Event{
			Kind:      orchestrator.EventPinChanged,
			Workspace: c.Want.Workspace,
			Run:       r.Run,
			Step:      r.Step,
			Job:       r.Job,
			Host:      c.Want.Name,
			Warning:   true,
			Message:   fmt.Sprintf("%s offers %s, pinned is %s", c.Pin.HostPort(), c.Seen, c.Pin.SHA256),
			By:        r.By,
		})
		if err != nil {
			return fmt.Errorf("record changed host key: %w", err)
		}
	}
	for _, t := range d.Retire {
		if err := p.Store.RetirePins(ctx, t.Pins, t.Reason, r.By); err != nil {
			return fmt.Errorf("retire pins: %w", err)
		}
	}
	for _, t := range d.Rotate {
		if err := p.Store.RotatePin(ctx, t.Old, t.New, r.By); err != nil {
			return fmt.Errorf("rotate pin: %w", err)
		}
	}
	if len(d.Add) > 0 {
		if err := p.Store.AddPins(ctx, r.Job, d.Add); err != nil {
			return fmt.Errorf("record pins: %w", err)
		}
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

// failure returns nil, or one error about every host that failed, with one
// command that rotates all changed ones.
func failure(d Decision) error {
	var lines, changed []string
	code, hint := orchestrator.CodeFailed, ""
	for _, v := range d.Hosts {
		if v.Err == nil {
			continue
		}
		f := orchestrator.FailureOf(v.Err)
		lines = append(lines, f.Message)
		if v.Changed {
			changed = append(changed, v.Want.ref())
		}
		if f.Code == orchestrator.CodeRefused {
			code = f.Code
			hint = f.Hint
		}
	}
	if len(lines) == 0 {
		return nil
	}
	if len(changed) > 0 {
		hint = "check it out of band, then: exocomp host onboard --rotate " + strings.Join(changed, " ")
	}
	return &orchestrator.Error{Code: code, Message: strings.Join(lines, "\n"), Hint: hint}
}
