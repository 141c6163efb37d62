import CacheCore
import Testing

@testable import DiskStore

@Suite("Disk store: entry headers")
struct EntryHeaderTests {
  @Test(
    "a header that states a body above the limit is damaged, even if a sparse file is as large",
    arguments: [(Int64(1) << 40, true), ((Int64(1) << 40) + 1, false), (Int64(1) << 60, false)])
  func longestBody(length: Int64, isRead: Bool) {
    let header = EntryHeader(
      revision: Revision(high: 1, low: 2), storedAt: Timestamp(seconds: 3), keyLength: 9, bodyLength: length)
    let parsed = header.encoded().withUnsafeBytes { EntryHeader.parse($0, fileSize: .max) }
    switch parsed {
    case .header(let read): #expect(isRead && read == header)
    case .damaged(let reason): #expect(!isRead && reason == "impossible header")
    case .newer: Issue.record("the header was parsed as a later format")
    }
  }
}
