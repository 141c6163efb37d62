#if SQLite
internal import GRDB

#if canImport(FoundationEssentials)
internal import FoundationEssentials
#else
internal import Foundation
#endif

/// Columns as they are: a damaged database may hold anything in any of them, and a plain subscript would trap.
extension Row {
  func integer(_ index: Int) -> Int64? { Int64.fromDatabaseValue(self[index]) }

  func data(_ index: Int) -> Data? { Data.fromDatabaseValue(self[index]) }
}
#endif
