package nethost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
)

// bridge names the lab's bridge. Link names have at most 15 bytes.
func (s *slot) bridge() string { return fmt.Sprintf("exnh%d", s.number) }

// port names the end of a host's cable that is plugged into the bridge.
func (s *slot) port(number int) string { return fmt.Sprintf("%sp%d", s.bridge(), number) }

// mac is fixed, so that the root namespace can have a permanent neighbour entry.
func (s *slot) mac(number int) string {
	return fmt.Sprintf("02:00:c6:12:%02x:%02x", s.number, number)
}

// addBridge lays the bridge. Its uplink is a cable that leads nowhere: without a
// port that is always up, cutting the last host off would take the carrier from
// the bridge. (Not every kernel has dummy links; veth the hosts need anyway.)
func (s *slot) addBridge(ctx context.Context) error {
	br := s.bridge()
	return ip(ctx,
		"link add name "+br+" address "+s.mac(1)+" type bridge",
		"link add name "+br+"u type veth peer name "+br+"v",
		"link set "+br+"v up",
		"link set "+br+"u master "+br+" up",
		"addr add "+s.addr(1).String()+"/24 dev "+br,
		"link set "+br+" up",
	)
}

// addCable lays a cable from the bridge to eth0 in the network namespace of pid.
// The end at the bridge stays down.
func (s *slot) addCable(ctx context.Context, number, pid int) error {
	return ip(ctx,
		fmt.Sprintf("link add name %s type veth peer name eth0 address %s netns %d", s.port(number), s.mac(number), pid),
		"link set "+s.port(number)+" master "+s.bridge(),
	)
}

// plug brings the bridge's end of a cable up and tells the root namespace for
// good which machine has the address. With a permanent neighbour entry packets
// to a host that is cut off vanish; without one the kernel would notice that
// nobody answers and report "no route to host" after three seconds.
func (s *slot) plug(ctx context.Context, number int, address string) error {
	return ip(ctx,
		"link set "+s.port(number)+" up",
		"neigh replace "+address+" lladdr "+s.mac(number)+" nud permanent dev "+s.bridge(),
	)
}

func (s *slot) unplug(ctx context.Context, number int) error {
	return ip(ctx, "link set "+s.port(number)+" down")
}

// removeLinks removes every link of the slot. The kernel removes a cable some
// time after the namespace at its other end, so one may vanish meanwhile.
func (s *slot) removeLinks(ctx context.Context) error {
	interfaces, err := net.Interfaces()
	if err != nil {
		return err
	}
	for _, i := range interfaces {
		if i.Name == s.bridge() || i.Name == s.bridge()+"u" || strings.HasPrefix(i.Name, s.bridge()+"p") {
			if err := removeLink(ctx, i.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func removeLink(ctx context.Context, name string) error {
	err := ip(ctx, "link del "+name)
	if err == nil {
		return nil
	}
	if _, gone := net.InterfaceByName(name); gone != nil {
		return nil
	}
	return err
}

// ip runs commands of ip(8) in order, in one process, and stops at the first
// that fails.
func ip(ctx context.Context, commands ...string) error {
	cmd := exec.CommandContext(ctx, "ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return errors.Join(fmt.Errorf("ip: %w", err), errors.New(strings.TrimSpace(stderr.String())))
	}
	return nil
}
