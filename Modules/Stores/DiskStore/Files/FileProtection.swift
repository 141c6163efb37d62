#if canImport(Darwin)
internal import Darwin
internal import Foundation
#endif

/// The protection class of a file on a device with a passcode. The class says when the device can decrypt the file.
///
/// A new file has the class of its folder or of the app. With `NSFileProtectionComplete`, every read fails while the device is
/// locked, so work in the background would find no entry, and the counters would be lost.
enum FileProtection: Int32, Sendable {
  /// While the device is unlocked.
  case complete = 1
  /// While the device is unlocked, and afterwards while the file is open.
  case completeUnlessOpen = 2
  /// From the first unlock after a start on.
  case untilFirstUnlock = 3
  /// Always.
  case unprotected = 4

  /// Returns the class that a file of the store needs instead of its current one, or `nil` if it can keep that. A class that an
  /// app has chosen to permit more stays.
  static func replacement(for current: Int32) -> FileProtection? {
    switch FileProtection(rawValue: current) {
    case .complete?, .completeUnlessOpen?: .untilFirstUnlock
    case .untilFirstUnlock?, .unprotected?, nil: nil
    }
  }

  /// Lets work in the background read a file, or create files in a folder: a file cannot be created in a class that the locked
  /// device does not permit. A failure changes nothing: the file or folder then keeps its class.
  static func permitBackground(_ descriptor: Int32) {
    #if canImport(Darwin) && !os(macOS)
    if let needed = replacement(for: fcntl(descriptor, F_GETPROTECTIONCLASS)) {
      _ = fcntl(descriptor, F_SETPROTECTIONCLASS, needed.rawValue)
    }
    #endif
  }

  /// Lets work in the background create files in folders.
  static func permitBackground(folders paths: [String]) {
    #if canImport(Darwin) && !os(macOS)
    for path in paths {
      if let folder = try? FileDescriptor(path, .folder) { permitBackground(folder.raw) }
    }
    #endif
  }
}

enum Backup {
  /// Excludes a folder from backups of the device. A failure changes nothing.
  static func exclude(_ path: String) {
    #if canImport(Darwin)
    var folder = URL(filePath: path)
    guard (try? folder.resourceValues(forKeys: [.isExcludedFromBackupKey]))?.isExcludedFromBackup != true else { return }
    var values = URLResourceValues()
    values.isExcludedFromBackup = true
    try? folder.setResourceValues(values)
    #endif
  }
}
