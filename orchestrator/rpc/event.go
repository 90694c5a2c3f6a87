package rpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

// Events reads the history, the oldest first.
type Events interface {
	ListEvents(ctx context.Context, filter orchestrator.EventFilter) ([]orchestrator.Event, error)
	// WatchEvents calls send for each event after filter.After, first those
	// that there are, then those that come, until send fails or ctx ends. It
	// ignores filter.Limit and filter.Newest. [Client.Watch] survives a restart.
	WatchEvents(ctx context.Context, filter orchestrator.EventFilter, send func(orchestrator.Event) error) error
}

// maxEvents bounds how many events travel in one message. There may be millions.
const maxEvents = 1000

type eventServer struct {
	exocompv1.UnimplementedEventServiceServer
	svc Events
}

func (s eventServer) ListEvents(ctx context.Context, req *exocompv1.ListEventsRequest) (*exocompv1.ListEventsResponse, error) {
	filter := eventFilterFromWire(req.GetFilter())
	if filter.Limit <= 0 || filter.Limit > maxEvents {
		filter.Limit = maxEvents
	}
	es, err := s.svc.ListEvents(ctx, filter)
	if err != nil {
		return nil, err
	}
	return &exocompv1.ListEventsResponse{Events: convert(es, eventToWire)}, nil
}

func (s eventServer) WatchEvents(req *exocompv1.WatchEventsRequest, stream grpc.ServerStreamingServer[exocompv1.WatchEventsResponse]) error {
	return s.svc.WatchEvents(stream.Context(), eventFilterFromWire(req.GetFilter()), func(e orchestrator.Event) error {
		return stream.Send(&exocompv1.WatchEventsResponse{Event: eventToWire(e)})
	})
}

// ListEvents implements [Events], in as many calls as it takes. It outlives
// restarts of the daemon as [Client.Watch] does, since it is how a wait begins.
func (c *Client) ListEvents(ctx context.Context, filter orchestrator.EventFilter) ([]orchestrator.Event, error) {
	var all []orchestrator.Event
	for limit := filter.Limit; ; {
		resp, err := submit(ctx, c, c.stubs.events.ListEvents, &exocompv1.ListEventsRequest{Filter: eventFilterToWire(filter)})
		if err != nil {
			return nil, err
		}
		page := convert(resp.GetEvents(), eventFromWire)
		all = append(all, page...)
		if len(page) == 0 || len(all) == limit {
			return all, nil
		}
		filter.After, filter.Newest = page[len(page)-1].ID, 0
		if limit > 0 {
			filter.Limit = limit - len(all)
		}
	}
}

// WatchEvents implements [Events].
func (c *Client) WatchEvents(ctx context.Context, filter orchestrator.EventFilter, send func(orchestrator.Event) error) error {
	return c.watchEvents(ctx, filter, func() {}, send)
}

func (c *Client) watchEvents(ctx context.Context, filter orchestrator.EventFilter, connected func(), send func(orchestrator.Event) error) error {
	return receive(ctx, func(ctx context.Context) (grpc.ServerStreamingClient[exocompv1.WatchEventsResponse], error) {
		return c.stubs.events.WatchEvents(ctx, &exocompv1.WatchEventsRequest{Filter: eventFilterToWire(filter)})
	}, connected, func(m *exocompv1.WatchEventsResponse) error {
		return send(eventFromWire(m.GetEvent()))
	})
}
