import FoundationEssentials
import GRDB

/// The values of a row whose file may be damaged. SQLite stores values of each type in each column, and GRDB's subscripts trap if a value cannot
/// be converted.
extension Row {
    /// The text of a column; `nil` if it has none.
    func text(_ column: Int) -> String? { String.fromDatabaseValue(self[column] as DatabaseValue) }

    /// The integer of a column; `nil` if it has none.
    func integer(_ column: Int) -> Int64? { Int64.fromDatabaseValue(self[column] as DatabaseValue) }

    /// The bytes of a column; `nil` if it has none.
    func bytes(_ column: Int) -> [UInt8]? { Data.fromDatabaseValue(self[column] as DatabaseValue).map { [UInt8]($0) } }

    /// The time of a column in milliseconds since 1970, within ``SampleBlock/timeLimit``; `nil` if it has none.
    func time(_ column: Int) -> Int64? { integer(column).map(SampleBlock.limited) }
}
