package rpc_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/exocomp/exocomp/orchestrator"
	"github.com/exocomp/exocomp/orchestrator/rpc/rpctest"
)

// pages is a service that notes how many events it is asked for at once.
type pages struct {
	*rpctest.Service
	events []orchestrator.Event
	most   int
}

func (p *pages) ListEvents(_ context.Context, f orchestrator.EventFilter) (found []orchestrator.Event, _ error) {
	p.most = max(p.most, f.Limit)
	if f.Limit == 0 {
		return nil, fmt.Errorf("asked for everything at once")
	}
	events := p.events
	if f.Newest > 0 {
		events = events[max(0, len(events)-f.Newest):]
	}
	for _, e := range events {
		if e.ID > f.After && len(found) < f.Limit {
			found = append(found, e)
		}
	}
	return found, nil
}

func TestAllEventsTravelInPages(t *testing.T) {
	const total = 2500
	svc := &pages{Service: rpctest.NewService()}
	for id := range int64(total) {
		svc.events = append(svc.events, orchestrator.Event{ID: id + 1, Kind: orchestrator.EventJobProgress})
	}
	c := rpctest.Serve(t, svc).Dial()
	for _, tc := range []struct {
		filter      orchestrator.EventFilter
		first, many int
	}{
		{orchestrator.EventFilter{}, 1, total},
		{orchestrator.EventFilter{After: 2000}, 2001, 500},
		{orchestrator.EventFilter{Limit: 1700}, 1, 1700},
		{orchestrator.EventFilter{Newest: 1200}, 1301, 1200},
		{orchestrator.EventFilter{Newest: 1200, Limit: 5}, 1301, 5},
		{orchestrator.EventFilter{Newest: 9999}, 1, total},
	} {
		got, err := c.ListEvents(t.Context(), tc.filter)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != tc.many || got[0].ID != int64(tc.first) || got[len(got)-1].ID != int64(tc.first+tc.many-1) {
			t.Errorf("%+v: %d events, want %d from %d on", tc.filter, len(got), tc.many, tc.first)
		}
	}
	if svc.most > 1000 {
		t.Errorf("%d events asked for at once", svc.most)
	}
}
