package wasmbin

// The sections of a component, by id, beside [SectionCustom].
const (
	SectionCoreModule      = 1
	SectionCoreInstance    = 2
	SectionCoreType        = 3
	SectionComponent       = 4
	SectionInstance        = 5
	SectionAlias           = 6
	SectionComponentType   = 7
	SectionCanon           = 8
	SectionComponentImport = 10
	SectionComponentExport = 11
)

// The sorts of definitions in a component, and those of core definitions that only components have.
const (
	SortCore      = 0x00
	SortFunc      = 0x01
	SortValue     = 0x02
	SortType      = 0x03
	SortComponent = 0x04
	SortInstance  = 0x05

	CoreType     = 0x10
	CoreModule   = 0x11
	CoreInstance = 0x12
)

// CoreInstances reads a section of core instances, and shows the module of each that is made of one.
func (r *Reader) CoreInstances(show func(module uint32)) {
	const instantiate = 0
	for range r.Count() {
		if r.Byte() == instantiate {
			show(r.U32())
		}
		for range r.Count() {
			r.Vector() // its name
			r.Byte()
			r.U32()
		}
	}
}

// Aliases reads a section of aliases, and shows the sort of each. core is its core sort if sort is [SortCore].
func (r *Reader) Aliases(show func(sort, core byte)) {
	const outer = 2
	for range r.Count() {
		sort, core := r.Byte(), byte(0)
		if sort == SortCore {
			core = r.Byte()
		}
		show(sort, core)
		if r.Byte() == outer {
			r.Numbers(2)
		} else {
			r.Numbers(1)
			r.Vector() // its name
		}
	}
}

// Imports reads a section of a component's imports, and shows the name and sort of each. core is its core sort if sort is [SortCore].
func (r *Reader) Imports(show func(name []byte, sort, core byte)) {
	const withInterface, equal = 1, 0
	for range r.Count() {
		if form := r.Byte(); form > withInterface {
			r.Fail("an import of form %#x", form)
		}
		name, sort, core := r.Vector(), r.Byte(), byte(0)
		typed := true // by a number
		switch sort {
		case SortCore:
			core = r.Byte()
		case SortType:
			typed = r.Byte() == equal
		case SortValue:
			r.Byte()
		}
		if typed {
			r.Numbers(1)
		}
		show(name, sort, core)
	}
}
