import Testing

@testable import DiskStore

@Suite("Disk store: the protection class of files")
struct FileProtectionTests {
  @Test("a file that a locked device cannot read gets the class that permits it, and every other file keeps its class")
  func replacement() {
    for current in [FileProtection.complete, .completeUnlessOpen] {
      #expect(FileProtection.replacement(for: current.rawValue) == .untilFirstUnlock)
    }
    for current in [FileProtection.untilFirstUnlock, .unprotected] {
      #expect(FileProtection.replacement(for: current.rawValue) == nil)
    }
    // The file system has no classes, or the call failed.
    for current: Int32 in [-1, 0, 5, .max, .min] { #expect(FileProtection.replacement(for: current) == nil) }
  }
}
