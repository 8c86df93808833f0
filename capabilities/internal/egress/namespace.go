package egress

import "net"

// elsewhere is a listener in another network namespace, whose address means nothing in this one.
type elsewhere struct{ net.Listener }
