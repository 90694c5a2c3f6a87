package rpc

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/exocomp/exocomp/orchestrator"
)

// shutdownMethod is how a go-plugin client that closes would stop the server
// for everybody.
const shutdownMethod = "/plugin.GRPCController/Shutdown"

// errStopping ends the streams when the server stops; clients come back.
var errStopping = orchestrator.Errorf(orchestrator.CodeUnavailable, "the daemon is stopping").
	WithHint("try again when it is back")

// unary authorizes a call and maps its error. Shutdown is answered and ignored.
func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	switch info.FullMethod {
	case shutdownMethod:
		return &emptypb.Empty{}, nil
	case grpc_health_v1.Health_Check_FullMethodName:
		return handler(ctx, req)
	}
	ctx, err := s.authorize(ctx, info.FullMethod)
	if err != nil {
		return nil, statusError(err)
	}
	resp, err := handler(ctx, req)
	if err != nil {
		return nil, statusError(err)
	}
	return resp, nil
}

// stream returns the interceptor that authorizes a stream, tells the client at
// once that it got through, maps its error, and ends it when serving ends.
func (s *Server) stream(serving context.Context) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx, err := s.authorize(stream.Context(), info.FullMethod)
		if err != nil {
			return statusError(err)
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(serving, func() { cancel(errStopping) })()
		if info.IsServerStream {
			if err := stream.SendHeader(metadata.MD{}); err != nil {
				return err
			}
		}
		err = handler(srv, contextStream{ServerStream: stream, ctx: ctx})
		// A service may take the end of the context for the end of the stream.
		if errors.Is(context.Cause(ctx), errStopping) && (err != nil || info.IsServerStream) {
			return statusError(errStopping)
		}
		return statusError(err)
	}
}

// contextStream is a stream with another context.
type contextStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s contextStream) Context() context.Context { return s.ctx }

// authorize returns ctx with the role of the call's token, or why the token
// may not call method.
func (s *Server) authorize(ctx context.Context, method string) (context.Context, error) {
	need, offered := methodRoles[method]
	token := bearerFrom(ctx)
	role := s.opts.Tokens.role(token)
	var err error
	switch {
	case token == "":
		err = orchestrator.Errorf(orchestrator.CodeUnauthenticated, "the call carries no token").
			WithHint("name the token file: --token-file FILE or %s=FILE", TokenFileEnv)
	case role == "":
		err = orchestrator.Errorf(orchestrator.CodeUnauthenticated, "the daemon does not know this token").
			WithHint("name the token file beside its socket: --token-file FILE or %s=FILE", TokenFileEnv)
	case !offered:
		return nil, status.Errorf(codes.Unimplemented, "%s is not offered", method)
	case !role.may(need):
		err = orchestrator.Errorf(orchestrator.CodeDenied, "a %s's token may only look at runs, schedules, inventories and pins", role).
			WithHint("use the operator's: --token-file FILE or %s=FILE, %s beside the socket", TokenFileEnv, OperatorTokenFile)
	default:
		return context.WithValue(ctx, roleKey{}, role), nil
	}
	if s.opts.Denied != nil {
		s.opts.Denied(ctx, method, err)
	}
	return nil, err
}
