internal import CacheCore

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// An open folder, which saves resolving the path for each file in it. A link in its place is not followed.
struct OpenFolder {
  private let descriptor: FileDescriptor

  init(_ path: String) throws(SystemError) { descriptor = try FileDescriptor(path, .folder) }

  /// Opens a folder inside an open folder.
  init(_ name: UnsafePointer<CChar>, in folder: OpenFolder) throws(SystemError) {
    descriptor = try FileDescriptor(name, in: folder.descriptor.raw)
  }

  /// Returns the status of the file at `name`. A link is not followed.
  func status(_ name: UnsafePointer<CChar>) throws(SystemError) -> FileStatus { try FileStatus(name, in: descriptor.raw) }

  func remove(_ name: UnsafePointer<CChar>, _ calls: FileCalls) -> SystemError? { calls.unlinkInside(descriptor.raw, name) }

  func removeEmptyFolder(_ name: UnsafePointer<CChar>) { _ = unlinkat(descriptor.raw, name, AT_REMOVEDIR) }
}

extension EntryName {
  /// Calls `body` with the file's name in its folder.
  func withFileName<Value>(_ body: (UnsafePointer<CChar>) -> Value) -> Value {
    let suffix: UInt8 = member.map { $0.isTransform ? Member.transformSuffix : Member.originalSuffix } ?? Member.originalSuffix
    return Self.withName(member?.digest ?? resource, suffix, body)
  }

  /// Calls `body` with the name of the resource's folder in its shard.
  func withResourceFolderName<Value>(_ body: (UnsafePointer<CChar>) -> Value) -> Value {
    Self.withName(resource, Self.folderSuffix, body)
  }

  private static func withName<Value>(_ digest: NameDigest, _ suffix: UInt8, _ body: (UnsafePointer<CChar>) -> Value) -> Value {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 35) { name in
      for place in 0..<32 {
        let word = place < 16 ? digest.high : digest.low
        let digit = CChar(word >> UInt64(60 - 4 * (place & 15)) & 15)
        name.initializeElement(at: place, to: digit < 10 ? 0x30 + digit : 0x61 - 10 + digit)
      }
      for (place, byte) in [0x2E, CChar(suffix), 0].enumerated() { name.initializeElement(at: 32 + place, to: byte) }
      return name.baseAddress.map { body(UnsafePointer($0)) } ?? body("")
    }
  }
}
