"""Install ``kb``, ``service``, ``ingest`` and ``ui`` below ``trainmedic``. The rest is in pyproject.toml."""

from setuptools import find_namespace_packages, setup

FOLDERS = ("kb", "service", "ingest", "ui")
found = find_namespace_packages(include=[pattern for folder in FOLDERS for pattern in (folder, f"{folder}.*")])

setup(
    # Folders of pages have no __init__.py and names such as "ms-swift": packages to setuptools alone.
    packages=[
        "trainmedic",
        *(f"trainmedic.{name}" for name in found if not name.startswith("kb.data")),
    ],
    package_dir={f"trainmedic.{folder}": folder for folder in FOLDERS},
)
