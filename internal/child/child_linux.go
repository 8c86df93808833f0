package child

import (
	"os/exec"
	"syscall"
)

// endWithParent has the system end the process when this one ends, however it does.
func endWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
