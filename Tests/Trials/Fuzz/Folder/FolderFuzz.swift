import CacheCore
import Foundation

@testable import DiskStore

/// Fuzzes the files beside the entries. The first byte selects `folder.key`, `generation`, `index` or a file name.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzFolder(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  var bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let choice = bytes.first else { return 0 }
  bytes.removeFirst()
  switch choice % 4 {
  case 0: readKey(bytes)
  case 1:
    do { try map(bytes) } catch { preconditionFailure("\(error)") }
  case 3: readIndex(bytes)
  default: readName(bytes)
  }
  return 0
}

/// Checks that a decoded key is encoded as the same bytes, and that no key of a later version is decoded.
private func readKey(_ bytes: [UInt8]) {
  precondition(FolderKey.laterVersion(bytes) == nil || FolderKey.decoded(bytes) == nil)
  if let key = FolderKey.decoded(bytes) { precondition(FolderKey.encoded(key) == bytes) }
  guard bytes.count == FolderKey.length else { return }
  let checksum = Array(bytes.prefix(28)).withUnsafeBytes { crc32c($0) }
  let mended = bytes.prefix(28) + withUnsafeBytes(of: checksum.littleEndian) { Array($0) }
  if let key = FolderKey.decoded(Array(mended)) {
    precondition(FolderKey.encoded(key) == Array(mended))
  }
}

/// Checks an index as it is, and with corrected head and checksum: a decoded index must survive encoding and decoding.
private func readIndex(_ bytes: [UInt8]) {
  let stamp = IndexFile.Stamp(boot: NameDigest(high: 1, low: 2), generation: .init(device: 3, inode: 4), count: 5)
  _ = bytes.withUnsafeBytes { IndexFile.decoded($0, stamp) }
  let count = bytes.count / IndexFile.entryLength
  var mended = Array(IndexFile.encoded(ResourceTable(), stamp).prefix(IndexFile.headLength - 8))
  withUnsafeBytes(of: UInt64(count).littleEndian) { mended += $0 }
  mended += bytes.prefix(count * IndexFile.entryLength)
  withUnsafeBytes(of: mended.withUnsafeBytes { crc32c($0) }.littleEndian) { mended += $0 }
  guard let entries = mended.withUnsafeBytes({ IndexFile.decoded($0, stamp) }) else { return }
  let shelves = ResourceTable(entries)
  precondition(shelves.count == entries.count && shelves.total >= 0)
  let again = IndexFile.encoded(shelves, stamp).withUnsafeBytes { IndexFile.decoded($0, stamp) }
  precondition(again?.mapValues(\.size) == entries.mapValues(\.size))
}

/// The counters, beside the folder whose lock makes an increment atomic.
private let path = {
  let folder = FileManager.default.temporaryDirectory.appending(path: "etagere-fuzz-\(getpid())")
  try? FileManager.default.createDirectory(at: folder.appending(path: "tmp"), withIntermediateDirectories: true)
  return folder.appending(path: "generation").path
}()

/// Checks that the counters of any file continue from their values after a repair.
private func map(_ bytes: [UInt8]) throws {
  try Data(bytes).write(to: URL(filePath: path))
  let generation = try Generation(path, .system)
  guard let before = generation.foreignChanges else { preconditionFailure("the counters were not repaired") }
  if bytes.count >= 264 {
    let (started, finished) = (counter(bytes, at: 64), counter(bytes, at: 128))
    let (next, overflow) = max(started, finished).addingReportingOverflow(1)
    if started == finished || overflow {
      precondition(before.started == started && before.finished == finished)
    } else {
      // Only a killed process leaves the counters of a file that no other cache has open unequal.
      precondition(before.isQuiet && before.started == next)
    }
  } else {
    precondition(before.isQuiet && before.started >= 1 << 32)
  }
  generation.around {}
  precondition(generation.foreignChanges == before)
  let again = try Generation(path, .system).foreignChanges
  precondition(again?.started == before.started &+ 1 && again?.finished == before.finished &+ 1)
  // Another program shortens the file while it is open.
  try Data(bytes.prefix(64)).write(to: URL(filePath: path))
  truncate(path, off_t(bytes.count % 200))
  generation.around {}
}

private func counter(_ bytes: [UInt8], at offset: Int) -> UInt64 {
  let stored = Array((bytes + repeatElement(0, count: 4096)).prefix(offset + 8))
  return stored.withUnsafeBytes { $0.integer(at: offset) }
}

/// Checks that the name of an entry leads to its own path.
private func readName(_ bytes: [UInt8]) {
  let parts = String(decoding: bytes, as: UTF8.self).split(separator: "/", omittingEmptySubsequences: false).map(String.init)
  guard parts.count == 2 else { return }
  if let name = EntryName(shard: parts[0].utf8, file: parts[1].utf8) {
    precondition(name.path(below: "") == "\(name.path(below: "", .shard))/\(parts[1])")
  }
  if let resource = EntryName.resource(ofFolder: parts[0].utf8), let name = EntryName(resource: resource, member: parts[1].utf8) {
    precondition(name.path(below: "") == "\(name.path(below: "", .shard))/\(parts[0])/\(parts[1])")
  }
}
