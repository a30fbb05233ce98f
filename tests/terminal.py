"""terminal.py ROWSxCOLUMNS SCRIPT COMMAND... - run it on a terminal of that size.

SCRIPT: lines "expect TEXT", "send TEXT", "size ROWSxCOLUMNS", "sleep S",
"kill SIGNAL", "stopped" (wait for that), "raw" and "cooked" (how the terminal
is now).  Prints what the command did; the exit code is its own, or 256 - SIGNAL.
"""
import fcntl, os, pty, re, select, signal, struct, sys, termios, time

rows, columns = map(int, sys.argv[1].split('x'))
pid, fd = pty.fork()
if pid == 0:
    time.sleep(0.2)
    os.execvp(sys.argv[3], sys.argv[3:])

def size(r, c):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', r, c, 0, 0))

size(rows, columns)
before = termios.tcgetattr(fd)
seen = b''
mark = 0

def more(seconds):
    global seen
    if not select.select([fd], [], [], seconds)[0]:
        return True
    try:
        data = os.read(fd, 65536)
    except OSError:
        data = b''
    seen += data
    return bool(data)

for line in sys.argv[2].splitlines():
    verb, _, text = line.strip().partition(' ')
    if not verb:
        continue
    text = text.encode().decode('unicode_escape').encode('latin1')
    if verb == 'expect':
        end = time.time() + 15
        while text not in seen[mark:]:
            if time.time() > end or not more(0.2):
                sys.stdout.buffer.write(b'missing %r in %r\n' % (text, seen))
                os.kill(pid, signal.SIGKILL)
                sys.exit(99)
        mark = seen.index(text, mark) + len(text)
    elif verb == 'send':
        os.write(fd, text)
    elif verb == 'size':
        size(*map(int, text.split(b'x')))
    elif verb == 'sleep':
        time.sleep(float(text))
    elif verb == 'kill':
        os.kill(pid, int(text))
    elif verb == 'stopped':
        os.waitid(os.P_PID, pid, os.WSTOPPED)
    elif verb in ('raw', 'cooked'):
        if (termios.tcgetattr(fd)[:4] == before[:4]) != (verb == 'cooked'):
            sys.stdout.buffer.write(b'not %s\n' % verb.encode())
            os.kill(pid, signal.SIGKILL)
            sys.exit(96)
end = time.time() + 20
while more(0.2):
    if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        break
    if time.time() > end:
        sys.stdout.buffer.write(b'does not end: %r\n' % seen)
        os.kill(pid, signal.SIGKILL)
        sys.exit(98)
while select.select([fd], [], [], 0.2)[0] and more(0.2):
    pass
try:
    after = termios.tcgetattr(fd)
except termios.error:
    after = before
_, status = os.waitpid(pid, 0)
sys.stdout.buffer.write(seen)
if after[:4] != before[:4]:
    print('terminal not restored', before, after)
    sys.exit(97)
sys.exit(os.waitstatus_to_exitcode(status) & 0xff)
