package rpc

import (
	"context"

	"google.golang.org/grpc"

	"github.com/exocomp/exocomp/orchestrator"
	exocompv1 "github.com/exocomp/exocomp/proto/exocomp/v1"
)

// Jobs shows the one queue and its logs. A job that crosses the contract has
// no token: [orchestrator.Attempt].Token is empty at the client.
type Jobs interface {
	// ListJobs answers the newest first.
	ListJobs(ctx context.Context, filter orchestrator.JobFilter) ([]orchestrator.Job, error)
	GetJob(ctx context.Context, id orchestrator.JobID) (orchestrator.Job, error)
	// RedriveJob answers the job that runs an interrupted one again.
	RedriveJob(ctx context.Context, id orchestrator.JobID) (orchestrator.Job, error)
	// CancelJob returns before the job has ended; force does not wait until
	// tofu has saved its state.
	CancelJob(ctx context.Context, id orchestrator.JobID, force bool) (orchestrator.Job, error)
	// ReadLog calls send for each chunk of a log, in order, until the log
	// ends, send fails or ctx ends. [Client.FollowLog] survives a restart.
	ReadLog(ctx context.Context, req LogRequest, send func(LogChunk) error) error
}

// LogRequest selects a part of a job's log.
type LogRequest struct {
	Job    orchestrator.JobID
	Offset int64 // bytes from the start
	Follow bool  // go on until the job is final and its log has been sent
}

// LogChunk is a piece of a log, at most a few hundred KiB.
type LogChunk struct {
	// Offset is where Data begins. It may lie beyond the end of the chunk
	// before: the middle of a long log is not kept.
	Offset int64
	Data   []byte
}

type jobServer struct {
	exocompv1.UnimplementedJobServiceServer
	svc Jobs
}

func (s jobServer) ListJobs(ctx context.Context, req *exocompv1.ListJobsRequest) (*exocompv1.ListJobsResponse, error) {
	js, err := s.svc.ListJobs(ctx, jobFilterFromWire(req))
	if err != nil {
		return nil, err
	}
	return &exocompv1.ListJobsResponse{Jobs: convert(js, jobToWire)}, nil
}

func (s jobServer) GetJob(ctx context.Context, req *exocompv1.GetJobRequest) (*exocompv1.GetJobResponse, error) {
	id, err := orchestrator.ParseJobID(req.GetId())
	if err != nil {
		return nil, err
	}
	j, err := s.svc.GetJob(ctx, id)
	if err != nil {
		return nil, err
	}
	return &exocompv1.GetJobResponse{Job: jobToWire(j)}, nil
}

func (s jobServer) RedriveJob(ctx context.Context, req *exocompv1.RedriveJobRequest) (*exocompv1.RedriveJobResponse, error) {
	id, err := orchestrator.ParseJobID(req.GetId())
	if err != nil {
		return nil, err
	}
	j, err := s.svc.RedriveJob(ctx, id)
	if err != nil {
		return nil, err
	}
	return &exocompv1.RedriveJobResponse{Job: jobToWire(j)}, nil
}

func (s jobServer) CancelJob(ctx context.Context, req *exocompv1.CancelJobRequest) (*exocompv1.CancelJobResponse, error) {
	id, err := orchestrator.ParseJobID(req.GetId())
	if err != nil {
		return nil, err
	}
	j, err := s.svc.CancelJob(ctx, id, req.GetForce())
	if err != nil {
		return nil, err
	}
	return &exocompv1.CancelJobResponse{Job: jobToWire(j)}, nil
}

func (s jobServer) ReadLog(req *exocompv1.ReadLogRequest, stream grpc.ServerStreamingServer[exocompv1.ReadLogResponse]) error {
	id, err := orchestrator.ParseJobID(req.GetId())
	if err != nil {
		return err
	}
	if req.GetOffset() < 0 {
		return orchestrator.Errorf(orchestrator.CodeInvalid, "log offset %d is negative", req.GetOffset())
	}
	r := LogRequest{Job: id, Offset: req.GetOffset(), Follow: req.GetFollow()}
	return s.svc.ReadLog(stream.Context(), r, func(c LogChunk) error {
		return stream.Send(&exocompv1.ReadLogResponse{Offset: c.Offset, Data: c.Data})
	})
}

// ListJobs implements [Jobs].
func (c *Client) ListJobs(ctx context.Context, filter orchestrator.JobFilter) ([]orchestrator.Job, error) {
	resp, err := c.stubs.jobs.ListJobs(ctx, jobFilterToWire(filter))
	return convert(resp.GetJobs(), jobFromWire), err
}

// GetJob implements [Jobs].
func (c *Client) GetJob(ctx context.Context, id orchestrator.JobID) (orchestrator.Job, error) {
	resp, err := c.stubs.jobs.GetJob(ctx, &exocompv1.GetJobRequest{Id: string(id)})
	return jobFromWire(resp.GetJob()), err
}

// RedriveJob implements [Jobs].
func (c *Client) RedriveJob(ctx context.Context, id orchestrator.JobID) (orchestrator.Job, error) {
	resp, err := submit(ctx, c, c.stubs.jobs.RedriveJob, &exocompv1.RedriveJobRequest{Id: string(id)})
	return jobFromWire(resp.GetJob()), err
}

// CancelJob implements [Jobs].
func (c *Client) CancelJob(ctx context.Context, id orchestrator.JobID, force bool) (orchestrator.Job, error) {
	resp, err := c.stubs.jobs.CancelJob(ctx, &exocompv1.CancelJobRequest{Id: string(id), Force: force})
	return jobFromWire(resp.GetJob()), err
}

// ReadLog implements [Jobs].
func (c *Client) ReadLog(ctx context.Context, req LogRequest, send func(LogChunk) error) error {
	return c.readLog(ctx, req, func() {}, send)
}

func (c *Client) readLog(ctx context.Context, req LogRequest, connected func(), send func(LogChunk) error) error {
	return receive(ctx, func(ctx context.Context) (grpc.ServerStreamingClient[exocompv1.ReadLogResponse], error) {
		return c.stubs.jobs.ReadLog(ctx, &exocompv1.ReadLogRequest{
			Id: string(req.Job), Offset: req.Offset, Follow: req.Follow,
		})
	}, connected, func(m *exocompv1.ReadLogResponse) error {
		return send(LogChunk{Offset: m.GetOffset(), Data: m.GetData()})
	})
}
