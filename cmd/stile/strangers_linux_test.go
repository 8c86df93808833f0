package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestStrangersTakeLittle opens as many connections as there may be, each with the largest head that a server accepts, made of as many fields as
// fit, and a body that does not arrive. The server takes no more memory for them than SECURITY.md says.
func TestStrangersTakeLittle(t *testing.T) {
	h := newHome(t)
	server, address, stderr := h.serve()
	go func() { _, _ = io.Copy(io.Discard, stderr) }()
	status := func(field string) (kib int) {
		t.Helper()
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", server.Process.Pid))
		if err == nil {
			_, after, _ := strings.Cut(string(text), field)
			_, err = fmt.Sscan(after, &kib)
		}
		if err != nil {
			t.Fatal(err)
		}
		return kib
	}
	send := func(size int) (answer string) {
		t.Helper()
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		var head strings.Builder
		fmt.Fprintf(&head, "POST /sign-in HTTP/1.1\r\nHost: %s\r\nContent-Length: 100\r\nExpect: 100-continue\r\n", address)
		for i := 0; head.Len() < size-len("fff:\r\n\r\n"); i++ {
			fmt.Fprintf(&head, "%x:\r\n", i+256)
		}
		if _, err := io.WriteString(c, head.String()+"\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err = bufio.NewReader(c).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	const largest = maxHeader + 4<<10 - 100 // net/http reads 4 KiB more
	before := status("VmRSS:")
	for i := range maxConnections {
		if answer := send(largest); !strings.Contains(answer, " 100 ") { // it has read the head, and waits for the body
			t.Fatalf("connection %d: %s", i, answer)
		}
	}
	most := status("VmHWM:") - before
	if answer := send(largest + 200); !strings.Contains(answer, " 431 ") {
		t.Errorf("a larger head: %s", answer)
	}
	text, err := os.ReadFile("../../SECURITY.md")
	if err != nil {
		t.Fatal(err)
	}
	part := regexp.MustCompile(`(?m)^\| connections \|.*\| (\d+) \|$`).FindStringSubmatch(string(text))
	if part == nil {
		t.Fatal("SECURITY.md does not say what connections take")
	}
	if bound, err := strconv.Atoi(part[1]); err != nil || most > bound<<10 {
		t.Errorf("%d connections take %d MiB, and SECURITY.md says %s, %v", maxConnections, most>>10, part[1], err)
	}
	t.Logf("%d MiB", most>>10)
}
