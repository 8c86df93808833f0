package main

import (
	"net"
	"net/http"
	"slices"
	"testing"
	"time"
)

// TestUnreadAnswersAreBounded writes to a client that reads nothing. The system keeps little of it.
func TestUnreadAnswersAreBounded(t *testing.T) {
	t.Parallel()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	client, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	if err := client.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		t.Fatal(err)
	}
	server, err := newConnections(l, 1).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Close() }()
	kept, answer := 0, make([]byte, 4<<10)
	for err == nil {
		_ = server.SetWriteDeadline(time.Now().Add(500 * time.Millisecond)) // the write below reports a failure
		var n int
		n, err = server.Write(answer)
		kept += n
	}
	if kept > 8*maxUnread {
		t.Errorf("the system keeps %d bytes", kept)
	}
}

// TestConnectionsGiveWay opens more connections than there may be. The client with the most loses the one that it used least recently.
func TestConnectionsGiveWay(t *testing.T) {
	for _, test := range []struct {
		name string
		// clients use the connections, in this order; nobody but strangers uses one without a name
		clients []string
		again   int // this connection is used once more
		loser   int
	}{
		{"strangers", []string{"", "", "", ""}, -1, 0},
		{"an agent with the most", []string{"", "a", "a", "a"}, -1, 1},
		{"an agent with the most, which uses its oldest", []string{"", "a", "a", "a"}, 1, 2},
		{"agents with as many", []string{"a", "b", "a", "b"}, -1, 0},
		{"one each", []string{"a", "b", "c", "d"}, -1, 0},
		{"a stranger beside agents", []string{"a", "", "b", "c"}, -1, 1},
	} {
		l := newConnections(nil, 4)
		var all []*connection
		open := func() *connection {
			ours, theirs := net.Pipe()
			t.Cleanup(func() { _ = theirs.Close() })
			c := &connection{Conn: ours, of: l}
			all = append(all, c)
			return l.add(c)
		}
		use := func(i int) {
			r, err := http.NewRequestWithContext(withConnection(t.Context(), all[i]), http.MethodGet, "/", nil)
			if err != nil {
				t.Fatal(err)
			}
			used(r, test.clients[i])
		}
		for i, client := range test.clients {
			if loser := open(); loser != nil {
				t.Fatalf("%s: connection %d makes one give way", test.name, i)
			}
			if client != "" {
				use(i)
			}
		}
		if test.again >= 0 {
			use(test.again)
		}
		loser := open()
		if at := slices.Index(all, loser); at != test.loser {
			t.Errorf("%s: connection %d gives way, not %d", test.name, at, test.loser)
			continue
		}
		for range 2 { // net/http closes it too
			_ = loser.Close()
		}
		if l.open.Len() != 4 {
			t.Errorf("%s: %d connections are open", test.name, l.open.Len())
		}
	}
}
