// Command hostile is a plugin that misbehaves as the variable HOSTILE says. Its type is
// HOSTILE_TYPE.
package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/bursar-accounting/bursar/plugins/sdk"
	bursarv1 "github.com/bursar-accounting/bursar/proto/bursar/v1"
)

func main() {
	switch os.Getenv("HOSTILE") {
	case "crash-at-start":
		fmt.Fprintln(os.Stderr, "cannot find \x1b[31mmy brain")
		os.Exit(3)
	case "silent":
		time.Sleep(time.Hour)
	case "garbage":
		os.Stdout.WriteString(strings.Repeat("\xff\x00garbage", 1<<20))
	case "flood-before-handshake":
		for {
			os.Stdout.WriteString(strings.Repeat("x", 1<<20))
		}
	case "wrong-protocol":
		fmt.Println("1|99|unix|/tmp/nowhere|grpc|")
		time.Sleep(time.Hour)
	case "net-rpc":
		fmt.Printf("1|1|unix|%s/s|netrpc|\n", os.Getenv("PLUGIN_UNIX_SOCKET_DIR"))
		time.Sleep(time.Hour)
	case "elsewhere":
		fmt.Println("1|1|tcp|192.0.2.1:1234|grpc|")
		time.Sleep(time.Hour)
	case "deaf":
		deaf()
	case "no-certificate", "huge":
		plain()
	case "hang-at-start":
		hold()
		fallthrough
	default:
		sdk.ServeSource(func() sdk.Source { return &source{how: os.Getenv("HOSTILE")} })
	}
}

// deaf accepts connections and never answers.
func deaf() {
	path := os.Getenv("PLUGIN_UNIX_SOCKET_DIR") + "/s"
	if _, err := net.Listen("unix", path); err != nil {
		panic(err)
	}
	fmt.Printf("1|1|unix|%s|grpc|\n", path)
	time.Sleep(time.Hour)
}

// plain is a plugin as one in another language may be: gRPC, health, the
// service, and no certificate.
func plain() {
	path := os.Getenv("PLUGIN_UNIX_SOCKET_DIR") + "/s"
	l, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	s := grpc.NewServer()
	h := health.NewServer()
	h.SetServingStatus("plugin", grpc_health_v1.HealthCheckResponse_SERVING)
	grpc_health_v1.RegisterHealthServer(s, h)
	bursarv1.RegisterSourcePluginServer(s, described{})
	fmt.Printf("1|1|unix|%s|grpc\n", path)
	_ = s.Serve(l)
}

type described struct {
	bursarv1.UnimplementedSourcePluginServer
}

func (described) Describe(context.Context, *bursarv1.DescribeRequest) (*bursarv1.DescribeResponse, error) {
	return &bursarv1.DescribeResponse{Type: "hostile", Version: "python", Rank: 4, Interval: "1m"}, nil
}

// Collect sends a message that is far beyond the limit.
func (described) Collect(stream grpc.BidiStreamingServer[bursarv1.CollectRequest, bursarv1.CollectResponse]) error {
	return stream.Send(&bursarv1.CollectResponse{Checkpoint: make([]byte, 128<<20)})
}

type source struct{ how string }

func (s *source) Describe() sdk.Description {
	d := sdk.Description{Type: cmp.Or(os.Getenv("HOSTILE_TYPE"), "hostile"), Version: "1", Attributes: []sdk.Attribute{{Name: "text", Type: sdk.TypeString}}}
	switch s.how {
	case "another-type":
		d.Type = "slurm"
	case "bad-attribute":
		d.Attributes[0].Name = "a b"
	case "panic-in-describe":
		panic("no idea")
	case "hang-in-describe":
		hold()
	}
	return d
}

func (s *source) Configure(context.Context, *sdk.Config) error {
	if s.how == "hang-in-configure" {
		hold()
	}
	return nil
}

// hold hangs for good when the file that HOSTILE_WHILE names is there.
func hold() {
	if _, err := os.Stat(os.Getenv("HOSTILE_WHILE")); err == nil {
		time.Sleep(time.Hour)
	}
}

func (s *source) Collect(ctx context.Context, _ sdk.Start, out *sdk.Stream) error {
	switch s.how {
	case "empty", "empty-alive": // batches, for ever
		for {
			if err := out.Send(ctx, sdk.Batch{}); err != nil {
				return err
			}
			if s.how == "empty-alive" {
				sdk.Alive(ctx)
			}
			time.Sleep(time.Millisecond)
		}
	case "alive": // and nothing else
		for ctx.Err() == nil {
			sdk.Alive(ctx)
			time.Sleep(time.Millisecond)
		}
		return ctx.Err()
	case "crash":
		println("panic: out of luck") // standard error itself: os.Stderr is a pipe of go-plugin
		os.Exit(2)
	case "last-words":
		for i := range 300 { // more than a pipe holds
			println("line", i+1, strings.Repeat("x", 400))
		}
		os.Exit(2)
	case "panic":
		panic("in the middle")
	case "hang":
		slog.Info("it hangs now")
		select {}
	case "flood":
		for {
			fmt.Fprintln(os.Stderr, strings.Repeat("noise\x07", 1000))
			fmt.Println(strings.Repeat("noise", 1000))
		}
	case "log-panic":
		fmt.Fprintln(os.Stderr, `{"@message":1,"@level":[],"@timestamp":{}}`)
	case "child":
		cmd := exec.Command("sleep", "3600")
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		return fmt.Errorf("child %d", cmd.Process.Pid)
	case "environment":
		return fmt.Errorf("%s", strings.Join(os.Environ(), "\n"))
	}
	return nil
}
