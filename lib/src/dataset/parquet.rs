//! Rows of a parquet file, as JSON.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use serde_json::{Map, Number, Value};

use super::error::DatasetError;
use super::rows::{OnRow, RawRow};

/// Hands over every row, nested structs, lists and maps included.
pub(super) fn for_each(path: &Path, file: File, on: &mut OnRow<'_>) -> Result<ControlFlow<()>, DatasetError> {
    let failed = |error: parquet::errors::ParquetError| DatasetError::Parquet {
        path: path.to_owned(),
        rows: 0,
        reason: error.to_string(),
    };
    let reader = SerializedFileReader::new(file).map_err(failed)?;
    for (index, row) in reader.get_row_iter(None).map_err(failed)?.enumerate() {
        let columns = row.map_err(failed)?.into_columns();
        let columns = columns.into_iter().map(|(name, field)| (name, value(&field))).collect();
        let flow = on(RawRow { row: index as u64 + 1, columns: Ok(columns), repaired: 0 });
        if flow.is_break() {
            return Ok(flow);
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// A field as JSON. Times become epoch milliseconds, bytes become text.
fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(bool) => (*bool).into(),
        Field::Byte(number) => (*number).into(),
        Field::Short(number) => (*number).into(),
        Field::Int(number) => (*number).into(),
        Field::Long(number) | Field::TimestampMillis(number) => (*number).into(),
        Field::UByte(number) => (*number).into(),
        Field::UShort(number) => (*number).into(),
        Field::UInt(number) => (*number).into(),
        Field::ULong(number) => (*number).into(),
        Field::TimestampMicros(micros) => micros.div_euclid(1000).into(),
        Field::Float16(float) => float_value(f64::from(*float)),
        Field::Float(float) => float_value(f64::from(*float)),
        Field::Double(float) => float_value(*float),
        Field::Str(text) => text.as_str().into(),
        Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()).into_owned().into(),
        Field::Date(_) | Field::TimeMillis(_) | Field::TimeMicros(_) | Field::Decimal(_) => {
            field.to_string().into()
        }
        Field::Group(row) => {
            let columns = row.get_column_iter().map(|(name, field)| (name.clone(), value(field)));
            Value::Object(columns.collect::<Map<_, _>>())
        }
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        Field::MapInternal(map) => {
            let entry = |(key, field): &(Field, Field)| {
                let key = match value(key) {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                (key, value(field))
            };
            Value::Object(map.entries().iter().map(entry).collect())
        }
    }
}

fn float_value(float: f64) -> Value {
    Number::from_f64(float).map_or(Value::Null, Value::Number)
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use parquet::basic::{Compression, ZstdLevel};
    use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;
    use serde_json::json;

    use super::*;

    const SCHEMA: &str = "message row {
        required binary instance_id (UTF8);
        optional binary repo (UTF8);
        optional group FAIL_TO_PASS (LIST) { repeated group list { optional binary element (UTF8); } }
        optional group install_config { optional binary test_cmd (UTF8); optional binary log_parser (UTF8); }
        optional int64 created_at (TIMESTAMP(MICROS, true));
    }";

    /// Two rows; the second lacks every optional column.
    pub(in super::super) fn write(path: &Path, compression: Compression) {
        let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
        let properties = Arc::new(WriterProperties::builder().set_compression(compression).build());
        let mut writer = SerializedFileWriter::new(File::create(path).unwrap(), schema, properties).unwrap();
        let mut group = writer.next_row_group().unwrap();
        // Values, definition levels, repetition levels.
        type Texts<'t> = (&'t [&'t str], &'t [i16], Option<&'t [i16]>);
        let texts: [Texts<'_>; 5] = [
            (&["a__b-1", "a__b-2"], &[0, 0], None),
            (&["a/b"], &[1, 0], None),
            (&["t::x[1]", "t::y"], &[3, 3, 0], Some(&[0, 1, 0])),
            (&["pytest -rA"], &[2, 0], None),
            (&["parse_log_pytest"], &[2, 0], None),
        ];
        for (values, definitions, repetitions) in texts {
            let values: Vec<ByteArray> = values.iter().map(|text| ByteArray::from(*text)).collect();
            let definitions = (definitions != [0, 0]).then_some(definitions);
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<ByteArrayType>().write_batch(&values, definitions, repetitions).unwrap();
            column.close().unwrap();
        }
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int64Type>().write_batch(&[1_609_298_073_000_000], Some(&[1, 0]), None).unwrap();
        column.close().unwrap();
        group.close().unwrap();
        writer.close().unwrap();
    }

    #[test]
    fn nested_columns_become_json() {
        let folder = tempfile::tempdir().unwrap();
        for compression in
            [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::ZSTD(ZstdLevel::default())]
        {
            let path = folder.path().join("t.parquet");
            write(&path, compression);
            let mut rows = Vec::new();
            let flow = for_each(&path, File::open(&path).unwrap(), &mut |row| {
                rows.push(Value::Object(row.columns.unwrap()));
                ControlFlow::Continue(())
            });
            assert!(flow.unwrap().is_continue());
            let first = json!({"instance_id": "a__b-1", "repo": "a/b", "FAIL_TO_PASS": ["t::x[1]", "t::y"],
                "install_config": {"test_cmd": "pytest -rA", "log_parser": "parse_log_pytest"},
                "created_at": 1_609_298_073_000_i64});
            assert_eq!(rows[0], first);
            assert_eq!((&rows[1]["instance_id"], &rows[1]["repo"]), (&json!("a__b-2"), &Value::Null));
        }
    }
}
