//go:build wasip1

package stile

import (
	"sync"
	"unsafe"
)

// The host runs no other code of the guest while it calls the allocator, and refuses calls meanwhile. Go may run another goroutine
// then, so one goroutine calls the host at a time.
var calling sync.Mutex

// given are the bytes that the host asked for and that nobody has read yet, by address.
var given = map[unsafe.Pointer][]byte{}

// nothing is where lists without elements are.
var nothing uint64

//go:wasmexport cabi_realloc
func allocate(old unsafe.Pointer, oldSize, align, size uint32) unsafe.Pointer {
	if size == 0 {
		return unsafe.Pointer(&nothing)
	}
	words := make([]uint64, (size+7)/8) // aligned to 8, the most that a value needs
	p := unsafe.Pointer(unsafe.SliceData(words))
	bytes := unsafe.Slice((*byte)(p), size)
	if oldSize > 0 {
		copy(bytes, unsafe.Slice((*byte)(old), oldSize))
		delete(given, old)
	}
	given[p] = bytes
	return p
}

// call keeps what the host reads during one call of it.
type call struct{ kept []unsafe.Pointer }

func begin() *call {
	calling.Lock()
	return &call{}
}

func (c *call) end() {
	c.kept = nil
	calling.Unlock()
}

// keep returns an address as the host gets it. What is there stays until the call has ended.
func (c *call) keep(p unsafe.Pointer) uint32 {
	c.kept = append(c.kept, p)
	return uint32(uintptr(p))
}

// area is memory for one value, which is zero.
func (c *call) area(size int) unsafe.Pointer { return c.elements(1, size) }

// elements is memory for so many values of this size, which are zero.
func (c *call) elements(n, size int) unsafe.Pointer {
	words := make([]uint64, (n*size+7)/8+1)
	p := unsafe.Pointer(unsafe.SliceData(words))
	c.keep(p)
	return p
}

func (c *call) text(s string) uint32 { return c.keep(unsafe.Pointer(unsafe.StringData(s))) }

func (c *call) storePair(p, data unsafe.Pointer, n int) {
	*(*uint32)(p) = c.keep(data)
	*(*uint32)(unsafe.Add(p, 4)) = uint32(n)
}

func (c *call) storeString(p unsafe.Pointer, s string) {
	c.storePair(p, unsafe.Pointer(unsafe.StringData(s)), len(s))
}

func (c *call) storeBytes(p unsafe.Pointer, b []byte) {
	c.storePair(p, unsafe.Pointer(unsafe.SliceData(b)), len(b))
}

// take returns the bytes of a list that the host wrote, which belong to the guest now.
func take(data unsafe.Pointer, n uint32) []byte {
	if n == 0 {
		return nil
	}
	defer delete(given, data)
	return unsafe.Slice((*byte)(data), n)
}

// pair reads the address and the length of a list.
func pair(p unsafe.Pointer) (data unsafe.Pointer, n uint32) {
	address := uintptr(*(*uint32)(p)) // what is there is in given
	return *(*unsafe.Pointer)(unsafe.Pointer(&address)), *(*uint32)(unsafe.Add(p, 4))
}

// takeString returns a text that the host wrote.
func takeString(data unsafe.Pointer, n uint32) string {
	b := take(data, n)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

func loadString(p unsafe.Pointer) string { return takeString(pair(p)) }

func loadBytes(p unsafe.Pointer) []byte { return take(pair(p)) }

func loadList[T any](p unsafe.Pointer, size int, load func(unsafe.Pointer) T) []T {
	data, n := pair(p)
	if n == 0 {
		return nil
	}
	defer delete(given, data)
	list := make([]T, n)
	for k := range list {
		list[k] = load(unsafe.Add(data, k*size))
	}
	return list
}

func loadOption[T any](p unsafe.Pointer, offset int, load func(unsafe.Pointer) T) *T {
	if *(*uint8)(p) == 0 {
		return nil
	}
	v := load(unsafe.Add(p, offset))
	return &v
}

// give returns the index of a handle that the host takes, which the guest no longer has.
func give(handle *uint32) uint32 {
	h := *handle
	*handle = 0
	return h
}
