#if SQLite
internal import GRDB

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Typed columns. A damaged database can have any value in any column, and a plain subscript would trap.
extension Row {
  func integer(_ index: Int) -> Int64? { Int64.fromDatabaseValue(self[index]) }

  func data(_ index: Int) -> Data? { Data.fromDatabaseValue(self[index]) }
}
#endif
