import CacheCore
import Foundation

@testable import DiskStore

/// Any bytes as what lies beside the entries: the first one chooses between `folder.key`, `generation` and a file's name.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzFolder(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  var bytes = Array(UnsafeBufferPointer(start: start, count: count))
  guard let choice = bytes.first else { return 0 }
  bytes.removeFirst()
  switch choice % 3 {
  case 0: readKey(bytes)
  case 1:
    do { try map(bytes) } catch { preconditionFailure("\(error)") }
  default: readName(bytes)
  }
  return 0
}

/// A key that is read is written as the same bytes.
private func readKey(_ bytes: [UInt8]) {
  if let key = FolderKey.decoded(bytes) { precondition(FolderKey.encoded(key) == bytes) }
  guard bytes.count == FolderKey.length else { return }
  let checksum = Checksum.of(Array(bytes.prefix(28)))
  let mended = bytes.prefix(28) + withUnsafeBytes(of: checksum.littleEndian) { Array($0) }
  if let key = FolderKey.decoded(Array(mended)) {
    precondition(FolderKey.encoded(key) == Array(mended) && FolderKey.digestSecret(key).count == 16)
  }
}

private let path = FileManager.default.temporaryDirectory.appending(path: "etagere-fuzz-\(getpid()).generation").path

/// Counters of any file go on from where they are, whatever is mended around them.
private func map(_ bytes: [UInt8]) throws {
  try Data(bytes).write(to: URL(filePath: path))
  let generation = try Generation(path, .system)
  let before = generation.foreignChanges
  precondition(before.started == counter(bytes, at: 64) && before.finished == counter(bytes, at: 128))
  generation.around {}
  precondition(generation.foreignChanges == before)
  let again = try Generation(path, .system).foreignChanges
  precondition(again.started == before.started &+ 1 && again.finished == before.finished &+ 1)
}

private func counter(_ bytes: [UInt8], at offset: Int) -> UInt64 {
  let stored = Array((bytes + repeatElement(0, count: 4096)).prefix(offset + 8))
  return stored.withUnsafeBytes { $0.integer(at: offset) }
}

/// A name that is taken for an entry's leads to that file, and nowhere else.
private func readName(_ bytes: [UInt8]) {
  let parts = String(decoding: bytes, as: UTF8.self).split(separator: "/", omittingEmptySubsequences: false).map(String.init)
  guard parts.count == 2 else { return }
  if let name = EntryName(shard: parts[0], file: parts[1]) { precondition(name.path == "\(name.shard)/\(parts[1])") }
  if let name = EntryName(folder: parts[0], member: parts[1]) {
    precondition(name.path == "\(name.shard)/\(parts[0])/\(parts[1])")
  }
}
