"""Empties the folder of an execution.

``supervisor`` removes a few files itself. Otherwise it calls ``empty_folder`` in a child process with the uid of the
program.
"""

from __future__ import annotations

import contextlib
import os

_FEW = 16


def remove_few_files(folder: str) -> bool:
    """Remove the files of ``folder`` and return True. Return False if it contains many files, or a folder.

    This is much faster than a child process that calls ``empty_folder``. Call it only if no process of the program is
    left.
    """
    names = os.listdir(folder)
    if not names:
        return True
    if len(names) > _FEW:
        return False
    try:
        for name in names:
            os.unlink(f"{folder}/{name}")
    except OSError:  # it is a folder, or this process may not remove it
        return False
    return not os.listdir(folder)


def empty_folder(folder: str) -> None:
    """Remove every file and folder below ``folder`` that this process may remove.

    The function uses directory descriptors, so it follows no symbolic link. It moves the content of each folder up to
    the root, so that deep nesting exhausts neither the stack nor the descriptors.
    """
    root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    names = os.listdir(root)
    moved = 0
    while names:
        name = names.pop()
        try:
            os.unlink(name, dir_fd=root)
            continue
        except OSError:
            pass  # it is a folder
        with contextlib.suppress(OSError):
            os.chmod(name, 0o700, dir_fd=root)
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
            for entry in os.listdir(inner):
                try:
                    os.unlink(entry, dir_fd=inner)
                except OSError:
                    moved += 1
                    os.chmod(entry, 0o700, dir_fd=inner)
                    os.rename(entry, f".moved-{moved}", src_dir_fd=inner, dst_dir_fd=root)
                    names.append(f".moved-{moved}")
            os.close(inner)
            os.rmdir(name, dir_fd=root)
