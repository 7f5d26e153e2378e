#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks the HIP headers against abi.tsv and speaks TAP.

  abi.py headers INCLUDE      every row, by each compiler, language and set of macros a client uses
  abi.py debian INCLUDE HIP   the rows that an installed HIP 5.2 header has too: equal, or listed
                              as different with the value it has there and the reason
  abi.py symbols LIB LIST HEADER...
                              the library exports what the list has, and that is what the headers
                              declare
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = '#include <stddef.h>\n#include <stdio.h>\n#include <hip/hip_runtime_api.h>\n'


class Tap:
    def __init__(self):
        self.count = 0
        self.failed = 0

    def result(self, good, name, detail=''):
        self.count += 1
        self.failed += not good
        print(f'{"ok" if good else "not ok"} {self.count} - {name}')
        for line in detail.splitlines()[:20]:
            print(f'# {line}')

    def skip(self, name, reason):
        self.count += 1
        print(f'ok {self.count} - {name} # SKIP {reason}')

    def end(self):
        print(f'1..{self.count}')
        return 1 if self.failed else 0


def rows():
    """kind, name, value, old value or None, reason"""
    with open(os.path.join(HERE, 'abi.tsv'), encoding='ascii') as table:
        for number, line in enumerate(table, 1):
            if line.startswith('#') or not line.strip():
                continue
            cells = line.rstrip('\n').split('\t')
            if len(cells) not in (3, 5) or cells[0] not in ('value', 'sizeof', 'offset'):
                sys.exit(f'abi.tsv:{number}: expected kind, name, value [, 5.2 value, reason]')
            old, reason = cells[3:] if len(cells) == 5 else (None, '')
            yield cells[0], cells[1], int(cells[2], 0), old, reason


def expression(kind, name):
    if kind == 'value':
        return f'(long long)({name})'
    if kind == 'sizeof':
        return f'(long long)sizeof({name})'
    struct, field = name.split('.', 1)
    return f'(long long)offsetof({struct}, {field})'


def compile_text(command, text, suffix):
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, 'check' + suffix)
        with open(source, 'w', encoding='ascii') as out:
            out.write(text)
        run = subprocess.run(command + [source], capture_output=True, text=True, check=False,
                             cwd=folder)
        return run.returncode, run.stderr


def check_headers(include):
    tap = Tap()
    table = list(rows())
    tap.result(len(table) > 300, f'the table has {len(table)} rows')
    for suffix, keyword, kinds in (
            ('.c', '_Static_assert', (('gcc', 'c11'), ('clang', 'c11'))),
            ('.cc', 'static_assert', (('g++', 'c++17'), ('clang++', 'c++17')))):
        text = INCLUDE + ''.join(
            f'{keyword}({expression(kind, name)} == {value}LL, "{kind} {name}");\n'
            for kind, name, value, _, _ in table)
        for compiler, std in kinds:
            for macros in ([], ['-D__HIP_PLATFORM_AMD__=1', '-DUSE_ROCM=1']):
                name = ' '.join([compiler, std] + macros)
                if not shutil.which(compiler):
                    tap.skip(name, f'{compiler} is not installed')
                    continue
                command = [compiler, '-std=' + std, '-Wall', '-Wextra', '-Wpedantic', '-Werror',
                           '-fsyntax-only', '-I', include] + macros
                code, errors = compile_text(command, text, suffix)
                tap.result(code == 0, name, errors)
                wrong = text.replace('== 1LL', '== 7LL', 1)
                code, _ = compile_text(command, wrong, suffix)
                tap.result(code != 0, name + ': a wrong value is noticed')
    return tap.end()


def values_in(include, entries):
    """Values of the entries that the header in include has, by compiling and running a program."""
    flags = ['-std=gnu11', '-w', '-D__HIP_PLATFORM_AMD__=1', '-I', include]
    words = set()
    for dump in (['-E'], ['-E', '-dM']):
        run = subprocess.run(['gcc'] + flags + dump + ['-x', 'c', '-'], input=INCLUDE,
                             capture_output=True, text=True, check=True)
        words.update(re.findall(r'\w+', run.stdout))
    known = [(kind, name) for kind, name in entries
             if all(word in words for word in re.findall(r'\w+', name))]
    while True:
        body = ''.join(f'printf("%lld\\n", {expression(k, n)});\n' for k, n in known)
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, 'values')
            code, errors = compile_text(['gcc'] + flags + ['-o', program],
                                        INCLUDE + 'int main(void) {\n' + body + '}\n', '.c')
            if code == 0:
                out = subprocess.run([program], capture_output=True, text=True, check=True).stdout
                return dict(zip(known, map(int, out.split())))
        # A word may exist without being this struct's field: the compiler names those lines.
        first = INCLUDE.count('\n') + 2
        bad = {int(n) - first for n in re.findall(r'check\.c:(\d+):\d+: error', errors)}
        if not bad:
            raise RuntimeError(errors)
        known = [entry for i, entry in enumerate(known) if i not in bad]


def check_debian(include, old_include):
    tap = Tap()
    header = os.path.join(old_include, 'hip', 'hip_runtime_api.h')
    if not os.path.exists(header):
        tap.skip('HIP 5.2 header', f'{header} is absent: install libamdhip64-dev')
        return tap.end()
    with open(os.path.join(old_include, 'hip', 'hip_version.h'), encoding='utf-8') as text:
        version = re.findall(r'#define HIP_VERSION_M\w+ (\d+)', text.read())
    if version != ['5', '2']:
        tap.skip('HIP 5.2 header', f'{header} is of HIP {".".join(version)}')
        return tap.end()
    table = list(rows())
    entries = [(kind, name) for kind, name, _, _, _ in table]
    ours, theirs = values_in(include, entries), values_in(old_include, entries)
    equal = absent = 0
    for kind, name, value, old, reason in table:
        here, there = ours.get((kind, name)), theirs.get((kind, name))
        label = f'{kind} {name}'
        if here != value:
            tap.result(False, label, f'our header has {here}, the table {value}')
        elif there is None:
            absent += 1
            if old not in (None, '-'):
                tap.result(False, label, f'listed as {old} in 5.2, but it is not there')
        elif there == value:
            equal += 1
            if old is not None:
                tap.result(False, label, 'listed as different, but equal')
        else:
            tap.result(old is not None and old != '-' and int(old, 0) == there,
                       f'{label}: {value}, in 5.2 {there}', reason)
    tap.result(equal > 250, f'{equal} of {len(table)} rows equal, {absent} not in 5.2')
    return tap.end()


def declared(header):
    """Public functions of a header of ours."""
    with open(header, encoding='utf-8') as source:
        text = source.read()
    if os.path.basename(os.path.dirname(header)) != 'hip':
        return set(re.findall(r'^KFDIRECT_API[^;(]*?(\w+)\(', text, re.M))
    for macro, name in re.findall(r'^#define (hip\w+) (hip\w+R\d+)$', text, re.M):
        text = re.sub(rf'\b{macro}\b', name, text)
    return set(re.findall(r'^(?:hipError_t|const char \*) ?(hip\w+)\(', text, re.M))


def check_symbols(library, listing, headers):
    tap = Tap()
    with open(listing, encoding='ascii') as lines:
        names = [line.strip() for line in lines if not line.startswith('#')]
    listed = set(names)
    run = subprocess.run(['nm', '-D', '--defined-only', library], capture_output=True, text=True,
                         check=True)
    symbols = [line.split() for line in run.stdout.splitlines()]
    exported = {name.split('@')[0] for _, kind, name in symbols if kind != 'A'}
    public = set().union(*map(declared, headers))
    tap.result(names == sorted(listed), 'the list is sorted and has nothing twice')
    for good, wrong in (
            ('what is exported is in the list', exported - listed),
            ('what is in the list is exported', listed - exported),
            ('what is in the list is declared in a public header', listed - public),
            ('what a public header declares is in the list', public - listed),
    ):
        tap.result(not wrong, good, '\n'.join(f'{name}: see {listing}' for name in sorted(wrong)))
    tap.result(all(kind in 'AT' for _, kind, _ in symbols), 'only functions are exported')
    return tap.end()


if __name__ == '__main__':
    if sys.argv[1] == 'symbols':
        sys.exit(check_symbols(sys.argv[2], sys.argv[3], sys.argv[4:]))
    if sys.argv[1] == 'headers':
        sys.exit(check_headers(os.path.abspath(sys.argv[2])))
    sys.exit(check_debian(os.path.abspath(sys.argv[2]), sys.argv[3]))
