"""Reading rows: every kind of source, and every way in which a file can be wrong."""

import zipfile

import numpy as np
import pytest

from training.data.source import open_source
from training.errors import SpecError, WorkerError
from training.spec.pipeline import DataSpec


def read(tmp_path, source, **fields):
    return open_source(DataSpec(source=source, **fields), tmp_path).read()


def write(tmp_path, text, name="rows.csv"):
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def refuse(tmp_path, source, **fields):
    with pytest.raises(SpecError) as caught:
        read(tmp_path, source, **fields)
    return str(caught.value)


def test_digits_are_real_and_scaled(tmp_path):
    rows = read(tmp_path, "digits")
    assert rows.x.shape == (1797, 64)
    assert rows.x.dtype == np.float32
    assert (rows.x.min(), rows.x.max()) == (0, 1)
    assert sorted(set(rows.y.tolist())) == list(range(10))


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("digit", "Did you mean 'digits'?"),
        ("s3://bucket/rows", "a path that ends in .npz or .csv"),
        ("missing.csv", "which is no file"),
        ("missing.npz", "which is no file"),
    ],
)
def test_unknown_source_is_refused(tmp_path, source, says):
    assert says in refuse(tmp_path, source, label="label" if source.endswith(".csv") else None)


def test_suffix_may_be_in_upper_case(tmp_path):
    write(tmp_path, "a,label\n1,0\n2,1\n", "ROWS.CSV")
    assert read(tmp_path, "ROWS.CSV", label="label").y.tolist() == [0, 1]
    with (tmp_path / "rows.NPZ").open("wb") as stream:
        np.savez(stream, x=np.ones((2, 1)), y=np.zeros(2))
    assert read(tmp_path, "rows.NPZ").x.shape == (2, 1)


def test_missing_file_names_its_neighbour(tmp_path):
    write(tmp_path, "a,label\n", "flowers.csv")
    assert "Did you mean 'flowers.csv'?" in refuse(tmp_path, "flower.csv", label="label")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"label": "y"}, "data.label: is for .csv files"),
        ({"params": {"n": 1}}, "data.params: are for sources of the kind"),
    ],
)
def test_fields_that_do_not_belong_to_the_source(tmp_path, fields, says):
    assert says in refuse(tmp_path, "digits", **fields)


# --- tables: K26 ---


def test_byte_order_mark_before_the_label_column(tmp_path):
    """K26."""
    write(tmp_path, b"\xef\xbb\xbflabel,a\n" + b"1,2.5\n" * 10)
    rows = read(tmp_path, "rows.csv", label="label")
    assert rows.y.tolist() == [1] * 10
    assert rows.features == ("a",)


def test_table_without_header(tmp_path):
    """K26."""
    write(tmp_path, "1,2.5\n" * 10)
    said = refuse(tmp_path, "rows.csv", label="label")
    assert "rows.csv:1: data.source: must begin with a line of column names. Received: numbers only, 1, 2.5." in said


@pytest.mark.parametrize("cell", ["NA", "", "-", " ", "nan"])
def test_missing_values_fail_by_default(tmp_path, cell):
    """K26: with file, line and column."""
    write(tmp_path, f"a,b,label\n1,2,0\n1,{cell},0\n")
    said = refuse(tmp_path, "rows.csv", label="label")
    assert "rows.csv:3: data.source: must have a value in column 'b'." in said
    assert "set data.missing to drop" in said


def test_missing_values_are_dropped_on_request(tmp_path):
    """K26."""
    write(tmp_path, "a,b,label\n1,2,0\n1,NA,0\n1,2,\n3,4,1\n")
    rows = read(tmp_path, "rows.csv", label="label", missing="drop")
    assert rows.x.tolist() == [[1, 2], [3, 4]]
    assert rows.notes == ("2 rows with a missing value were dropped.",)


def test_every_mistake_is_named_up_to_ten(tmp_path):
    write(tmp_path, "a,label\n" + "x,0\n" * 50)
    with pytest.raises(SpecError) as caught:
        read(tmp_path, "rows.csv", label="label")
    assert [problem.line for problem in caught.value.problems] == list(range(2, 12))


def test_semicolons_with_decimal_commas(tmp_path):
    """K26."""
    write(tmp_path, "a;b;label\n1,5;-2,25e1;0\n2.5;3;1\n")
    rows = read(tmp_path, "rows.csv", label="label")
    assert rows.x.tolist() == [[1.5, -22.5], [2.5, 3]]


def test_row_with_an_extra_column(tmp_path):
    """K26."""
    write(tmp_path, "a,label\n1,0\n2,1,9\n")
    assert "rows.csv:3: data.source: must have 2 cells, as the header has. Received: 3." in refuse(
        tmp_path, "rows.csv", label="label"
    )


def test_crlf_and_quoted_line_break(tmp_path):
    """K26: a record over two lines does not shift the line numbers behind it."""
    write(tmp_path, 'a,"the\r\nlabel"\r\n1,"yes\r\nno"\r\n\r\n2,maybe\r\n')
    rows = read(tmp_path, "rows.csv", label="the\r\nlabel")
    assert rows.y.tolist() == ["yes\r\nno", "maybe"]
    write(tmp_path, 'a,label\r\n1,"yes\r\nno"\r\n\r\nx,maybe\r\n')
    assert "rows.csv:5: data.source: must have a finite number in column 'a'. Received: 'x'." in refuse(
        tmp_path, "rows.csv", label="label"
    )


def test_duplicate_and_blank_column_names(tmp_path):
    """K26."""
    write(tmp_path, "a,,a,label\n1,2,3,0\n")
    said = refuse(tmp_path, "rows.csv", label="label")
    assert "Received: none for column 2." in said
    assert "Received: a more than once." in said


def test_label_column_that_is_not_there(tmp_path):
    write(tmp_path, "a,species\n1,0\n")
    assert "Did you mean 'species'?" in refuse(tmp_path, "rows.csv", label="specie")
    assert "Known: a, species." in refuse(tmp_path, "rows.csv")


def test_table_with_a_header_only(tmp_path):
    """K25."""
    write(tmp_path, "a,label\n")
    assert "must have at least 2 rows. Received: a header and nothing below it" in refuse(
        tmp_path, "rows.csv", label="label"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "an empty line or file"),
        (b"a,label\n\xff\xfe,1\n", "must be UTF-8 text"),
        ('a,label\n"1,0\n', "must be readable as CSV"),
        ("label\n1\n", "must have a column beside the label"),
        ("a,label\n1e999,0\n", "must have a finite number in column 'a'. Received: '1e999'"),
        ("a,label\n1_0,0\n", "Received: '1_0'"),
    ],
)
def test_text_that_is_no_table_of_numbers(tmp_path, text, says):
    write(tmp_path, text)
    assert says in refuse(tmp_path, "rows.csv", label="label")


@pytest.mark.parametrize(
    ("labels", "kind", "values"),
    [
        ("0 2 1", "i", [0, 2, 1]),
        ("0.5 2 1", "f", [0.5, 2, 1]),
        ("b a b", "U", ["b", "a", "b"]),
        ("1 a 2", "U", ["1", "a", "2"]),
    ],
)
def test_label_type_tells_classes_from_numbers(tmp_path, labels, kind, values):
    """K26."""
    write(tmp_path, "a,label\n" + "".join(f"1,{label}\n" for label in labels.split()))
    rows = read(tmp_path, "rows.csv", label="label")
    assert (rows.y.dtype.kind, rows.y.tolist()) == (kind, values)


# --- archives ---


def test_archive(tmp_path):
    np.savez(tmp_path / "rows.npz", x=np.ones((3, 2), np.uint8), y=np.array([0, 1, 0]))
    rows = read(tmp_path, "rows.npz")
    assert (rows.x.shape, rows.x.dtype, rows.y.tolist()) == ((3, 2), np.uint8, [0, 1, 0])


def test_archive_that_lacks_an_array(tmp_path):
    np.savez(tmp_path / "rows.npz", X=np.ones((3, 2)), y=np.ones(3))
    assert "which lacks x. Did you mean 'X'?" in refuse(tmp_path, "rows.npz")


def test_archive_of_python_objects_is_not_loaded(tmp_path):
    np.savez(tmp_path / "rows.npz", x=np.array([{}, {}], dtype=object), y=np.ones(2))
    assert "Python objects" in refuse(tmp_path, "rows.npz")


ARRAY = (
    b"\x93NUMPY\x01\x00v\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }" + b" " * 60 + b"\n" + b"\x00" * 8
)


@pytest.mark.parametrize("content", [b"", ARRAY, b"PK\x03\x04 half of it", b"\x93NUMPY\x01"])
def test_broken_archive(tmp_path, content):
    write(tmp_path, content, "rows.npz")
    assert "must be a whole .npz archive" in refuse(tmp_path, "rows.npz")


def test_truncated_archive(tmp_path):
    np.savez(tmp_path / "rows.npz", x=np.random.default_rng(0).random((500, 9)), y=np.ones(500))
    whole = (tmp_path / "rows.npz").read_bytes()
    write(tmp_path, whole[: len(whole) // 2], "rows.npz")
    assert "must be a whole .npz archive" in refuse(tmp_path, "rows.npz")


def test_archive_with_a_flipped_byte(tmp_path):
    np.savez(tmp_path / "rows.npz", x=np.zeros((500, 9)), y=np.ones(500))
    content = bytearray((tmp_path / "rows.npz").read_bytes())
    content[1000] ^= 1
    write(tmp_path, bytes(content), "rows.npz")
    with zipfile.ZipFile(tmp_path / "rows.npz") as archive:
        assert archive.testzip() == "x.npy"
    assert "must be a whole .npz archive" in refuse(tmp_path, "rows.npz")


# --- functions ---

MODULE = """
import numpy as np
def rows(count, width=2):
    return np.ones((count, width)), np.zeros(count)
def lazy(): yield 1
def ragged(): return [[1], [1, 2]], [0, 0]
def three(): return 1, 2, 3
def broken(): raise KeyError("column")
number = 7
"""


@pytest.fixture
def module(tmp_path):
    name = f"rows_of_{tmp_path.name}".replace("-", "_")
    write(tmp_path, MODULE, f"{name}.py")
    return name


def test_function_of_a_file_and_of_a_module(tmp_path, module):
    for place in (f"{module}.py", module):
        rows = read(tmp_path, f"{place}:rows", params={"count": 4})
        assert rows.x.shape == (4, 2)


@pytest.mark.parametrize(
    ("function", "params", "says"),
    [
        ("row", {}, "Did you mean 'rows'?"),
        ("rows", {}, "must give count, which"),
        ("rows", {"count": 2, "widht": 3}, "data.params.widht: must be a parameter of"),
        ("lazy", {}, "Received: a generator"),
        ("three", {}, "Received: a tuple of 3"),
        ("ragged", {}, "rows of unequal shapes"),
        ("number", {}, "must name a function"),
    ],
)
def test_function_that_does_not_fit(tmp_path, module, function, params, says):
    assert says in refuse(tmp_path, f"{module}.py:{function}", params=params)


def test_function_that_raises_is_the_users_failure(tmp_path, module):
    with pytest.raises(WorkerError, match=r"broken raised KeyError: 'column'"):
        read(tmp_path, f"{module}.py:broken")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import no_such_thing\n", "needs the module no_such_thing (line 1 of"),
        ("x = 1\nraise ValueError('no')\n", "which raised ValueError: no (line 2 of"),
        ("def rows(:\n", "which raised SyntaxError"),
    ],
)
def test_file_that_cannot_be_imported(tmp_path, text, says):
    write(tmp_path, text, "broken_rows.py")
    assert says in refuse(tmp_path, "broken_rows.py:rows")


def test_module_that_is_not_there(tmp_path):
    assert "there is no module no_such_rows in" in refuse(tmp_path, "no_such_rows:rows")
    assert "which is" not in refuse(tmp_path, "no_such_rows.py:rows")
