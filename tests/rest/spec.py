"""spec.py - share/openapi.yaml, a client, and TAP, for the tests of it.

Debian's python3-yaml and python3-jsonschema: run it with /usr/bin/python3.
"""
import http.client
import io
import json
import os
import sys
import tarfile
import urllib.parse

import jsonschema
import yaml

METHODS = ('get', 'put', 'post', 'delete', 'patch')
SPEC = os.path.join(os.path.dirname(os.path.realpath(__file__)),
                    '../../share/openapi.yaml')


class Spec:
    def __init__(self):
        with open(SPEC, encoding='utf-8') as f:
            self.doc = yaml.safe_load(f)
        self.resolver = jsonschema.RefResolver('', self.doc)
        self.ops = {}
        for path, item in self.doc['paths'].items():
            for method in METHODS:
                if method in item:
                    self.ops[item[method]['operationId']] = Operation(
                        self, path, method, item)

    def get(self, node):
        while isinstance(node, dict) and '$ref' in node:
            node = self.resolver.resolve(node['$ref'])[1]
        return node

    def faults(self, schema, value):
        """What is wrong with the value, as texts."""
        check = jsonschema.Draft202012Validator(
            schema, resolver=self.resolver,
            format_checker=jsonschema.draft202012_format_checker)
        return ['%s: %s' % ('/'.join(map(str, e.absolute_path)) or '.',
                            e.message[:200])
                for e in check.iter_errors(value)]


class Operation:
    def __init__(self, spec, path, method, item):
        op = item[method]
        self.spec, self.path, self.method = spec, path, method
        self.id, self.scope = op['operationId'], op.get('x-scope')
        self.arrakis = op.get('x-arrakis', False)
        self.free = op.get('security') == []
        self.params = [spec.get(p) for p in
                       item.get('parameters', []) + op.get('parameters', [])]
        self.body_type, self.body_schema, self.bodies = None, None, {}
        body = spec.get(op.get('requestBody'))
        if body:
            self.body_type, media = next(iter(body['content'].items()))
            self.body_schema = media['schema']
            self.bodies = {k: spec.get(e)['value']
                           for k, e in media.get('examples', {}).items()}
        # key -> (status, type, schema, value); (status, type) -> schema
        self.answers, self.schemas = {}, {}
        self.shared, self.faults = set(), []
        for status, response in op['responses'].items():
            shared = '$ref' in response and not status.startswith('2')
            for kind, media in spec.get(response)['content'].items():
                self.schemas[status, kind] = media['schema']
                for key, example in media.get('examples', {}).items():
                    if key in self.answers:
                        self.faults.append('two answers for %s' % key)
                    if shared:
                        self.shared.add(key)
                    self.answers[key] = (status, kind, media['schema'],
                                         spec.get(example)['value'])

    def keys(self):
        """The examples that are to be sent."""
        return [k for k in self.answers if k not in self.shared]

    def json_body(self):
        return self.body_type == 'application/json'

    def parameters(self, key, given):
        path, query = self.path, []
        for p in self.params:
            examples = p.get('examples', {})
            if p['name'] in given:
                value = given[p['name']]
            elif key in examples:
                value = examples[key]['value']
            elif 'work' in examples and (p['in'] == 'path' or
                                         p.get('required')):
                value = examples['work']['value']
            elif p.get('required'):
                value = next(iter(examples.values()))['value']
            else:
                continue
            text = {True: 'true', False: 'false'}.get(value, str(value)) \
                if isinstance(value, bool) else str(value)
            if p['in'] == 'path':
                path = path.replace('{%s}' % p['name'],
                                    urllib.parse.quote(text, safe=''))
            else:
                query.append((p['name'], text))
        return path + ('?' + urllib.parse.urlencode(query) if query else '')

    def body(self, key, extra=None):
        """The bytes to send for an example, or `extra`, or None."""
        if self.body_type is None:
            return None
        value = extra
        if value is None:
            value = self.bodies.get(key, next(iter(self.bodies.values())))
        if self.json_body():
            return json.dumps(value).encode()
        if self.body_type == 'application/x-tar' and value == 'tar':
            return tar_bytes()
        return value.encode()


def tar_bytes():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w') as tar:
        for name, kind, data in (('dir', tarfile.DIRTYPE, b''),
                                 ('dir/file', tarfile.REGTYPE, b'in a tree'),
                                 ('link', tarfile.SYMTYPE, b'')):
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, len(data)
            info.mode = 0o755 if kind == tarfile.DIRTYPE else 0o640
            info.linkname = 'dir/file' if kind == tarfile.SYMTYPE else ''
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


class Server:
    def __init__(self, base, token=None):
        url = urllib.parse.urlsplit(base)
        self.host, self.port = url.hostname, url.port
        self.token = token

    def send(self, method, target, body=None, kind=None, token=None,
             headers=None):
        """(status, headers, bytes)"""
        c = http.client.HTTPConnection(self.host, self.port, timeout=90)
        all_headers = dict(headers or {})
        token = token if token is not None else self.token
        if token:
            all_headers['Authorization'] = 'Bearer ' + token
        if kind:
            all_headers['Content-Type'] = kind
        try:
            c.request(method.upper(), target, body, all_headers)
            r = c.getresponse()
            return r.status, r.headers, r.read()
        finally:
            c.close()


# ---- TAP ---------------------------------------------------------------------

count, failed = 0, 0


def test(name, faults):
    global count, failed
    count += 1
    failed += bool(faults)
    print('%s %d - %s' % ('not ok' if faults else 'ok', count, name))
    for fault in faults:
        print('# ' + str(fault).replace('\n', '\n# '))
    sys.stdout.flush()


def done():
    print('1..%d' % count)
    sys.exit(failed != 0)
