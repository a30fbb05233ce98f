"""flow.py BASE [WHO] - what py-arrakis' users do, with py-arrakis as it is.

BASE is what they give to it; with a token it is http://any:TOKEN@host:port.
Its README, the examples of Arrakis, and what has been asked for there: a
restore while the original lives, a snapshot of what was restored.
"""
import sys

import requests
from py_arrakis import SandboxManager

count = 0


def check(what, true):
    global count
    count += 1
    print('%s %d - %s' % ('ok' if true else 'not ok', count, what))
    sys.stdout.flush()


def status_of(call, *args):
    try:
        call(*args)
        return 200, None
    except requests.HTTPError as e:
        return e.response.status_code, e.response.json()['error']['message']


def readme(base):
    manager = SandboxManager(base)
    check('list_all() of nothing', manager.list_all() == [])
    sandbox = manager.start_sandbox('my-sandbox')
    result = sandbox.run_cmd('echo hello world')
    check('run_cmd()', result == {'output': 'hello world\n', 'error': ''})
    snapshot_id = sandbox.snapshot('snapshot-v1')
    check('snapshot()', snapshot_id == 'snapshot-v1')
    sandbox.destroy()
    restored = manager.restore('my-vm', snapshot_id)
    check('restore()', [s.name for s in manager.list_all()] == ['my-vm'])
    # A tenant's guests have its name in front of theirs.
    check('and it runs', restored.run_cmd('hostname')['output'].split('.')[-1]
          == 'my-vm\n')
    restored.destroy()
    check('destroy()', manager.list_all() == [])


def backtrack(base):
    """The cookbook: try, go back, try again; in a with."""
    manager = SandboxManager(base)
    with manager.start_sandbox('agent') as sandbox:
        info = sandbox.info()
        check('info()', info['name'] == 'agent' and
              info['status'] == 'RUNNING' and
              info['ip'].count('.') == 3 and '/' in info['ip'] and
              info['tap_device_name'] != '')
        sandbox.upload_files([{'path': 'hello.txt', 'content': 'héllo\n'},
                              {'path': '/root/abs', 'content': 'x' * 100000}])
        files = sandbox.download_files(['hello.txt', '/root/abs', 'none'])
        check('upload_files(), download_files()',
              [f['path'] for f in files] == ['hello.txt', '/root/abs', 'none']
              and files[0]['content'] == 'héllo\n' and
              files[1]['content'] == 'x' * 100000 and
              not files[0]['error'] and files[2]['error'] != '')
        check('an uploaded file is where commands run',
              sandbox.run_cmd('cat hello.txt')['output'] == 'héllo\n')
        check('a command that fails', sandbox.run_cmd(
            'ls /nothing; exit 3')['error'] == 'exit status 3')
        check('in the background', sandbox.run_cmd(
            'sleep 1; echo late > /tmp/late', blocking=False)['error'] == '')
        sandbox.run_cmd("echo 'test data before snapshot' > /tmp/testfile")
        first = sandbox.snapshot()
        check('a snapshot with a name of its own',
              first.startswith('snapshot-agent-'))
        sandbox.run_cmd("echo 'after' > /tmp/testfile")
        with manager.restore('back', first) as back:
            check('restored beside the original', back.run_cmd(
                'cat /tmp/testfile')['output'] ==
                  'test data before snapshot\n')
            check('which goes on', sandbox.run_cmd(
                'cat /tmp/testfile')['output'] == 'after\n')
            back.run_cmd('echo deeper > /tmp/testfile')
            second = back.snapshot('second')
            with manager.restore('deeper', second) as deeper:
                check('a snapshot of what was restored', deeper.run_cmd(
                    'cat /tmp/testfile')['output'] == 'deeper\n')
                check('list_all()', sorted(
                    s.name for s in manager.list_all()) ==
                    ['agent', 'back', 'deeper'])
                check('addresses of their own', len(
                    {s.info()['ip'] for s in manager.list_all()}) == 3)
        check('with ... destroys', [
            s.name for s in manager.list_all()] == ['agent'])
        sandbox.update_state('paused')
        check('paused', sandbox.info()['status'] == 'PAUSED')
        sandbox.update_state('stopped')
        check('stopped', sandbox.info()['status'] == 'STOPPED')
        sandbox = manager.start_sandbox('agent')
        check('started again', sandbox.info()['status'] == 'RUNNING')
        check('its files are there', sandbox.download_files(
            ['/root/abs'])[0]['content'] == 'x' * 100000)
    check('a with that fails destroys too', fails(manager))


def fails(manager):
    try:
        with manager.start_sandbox('fails'):
            raise KeyError
    except KeyError:
        return manager.list_all() == []
    return False


def errors(base):
    manager = SandboxManager(base)
    sandbox = manager.start_sandbox('once')
    for what, status, call, args in (
            ('a name that runs', 409, manager.start_sandbox, ('once',)),
            ('no such snapshot', 404, manager.restore, ('x', 'nothing')),
            ('no command', 400, sandbox.run_cmd, ('',)),
            ('no files', 400, sandbox.upload_files, ([],))):
        got, message = status_of(call, *args)
        check('%s: %d, %s' % (what, got, message),
              got == status and bool(message))
    manager.start_sandbox('two')
    manager.destroy_all()
    check('destroy_all()', manager.list_all() == [])
    for call, args in ((sandbox.info, ()), (sandbox.destroy, ()),
                       (sandbox.run_cmd, ('true',)), (sandbox.snapshot, ()),
                       (sandbox.update_state, ('paused',)),
                       (sandbox.download_files, (['x'],))):
        got, message = status_of(call, *args)
        check('%s() of one that is gone: %d, %s' %
              (call.__name__, got, message), got == 404 and bool(message))


readme(sys.argv[1])
backtrack(sys.argv[1])
errors(sys.argv[1])
print('1..%d' % count)
