import Foundation

/// Takes away what a store depends on while it is in use, and gives it back. Each case has its own process. Cases that mount
/// something also have their own namespace, so that nothing stays mounted.
struct EnvironmentSuite {
  private let trial: Trial

  init(_ trial: Trial) { self.trial = trial }

  func run() throws -> [String] {
    let mounts = Self.canMount
    var findings: [String] = []
    for condition in Condition.allCases {
      let folder = "\(trial.folder)/\(condition.rawValue)"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      // The process may become another user, who must be able to reach the folder.
      for path in [trial.folder, folder] { chmod(path, 0o711) }
      let isMounted = condition.mountOptions != nil && mounts != nil
      let role = ["child", "environment", condition.rawValue, folder, String(trial.seed), isMounted ? "mounted" : "plain"]
      let child: Child
      if let options = condition.mountOptions, let mounts {
        child = try Child(
          mounts + [#"mount -t tmpfs -o "$0" tmpfs "$1" && shift && exec "$@""#, options, folder, Child.program] + role,
          program: "unshare")
      } else {
        child = try Child(role)
      }
      let told = child.rest()
      let end = child.end(kills: false)
      try require(end == .exited(0), "\(condition.rawValue): \(told.last ?? "") (\(end))")
      findings += told.map { "\(condition.rawValue): \($0)" }
    }
    return findings
  }

  /// The arguments of `unshare` that allow mounts for one process only, or `nil` if that is not possible.
  private static var canMount: [String]? {
    let ways = [["-m", "--propagation", "private", "sh", "-c"], ["-r", "-m", "--propagation", "private", "sh", "-c"]]
    return ways.first { way in
      let folder = FileManager.default.temporaryDirectory.path
      guard let child = try? Child(way + [#"mount -t tmpfs tmpfs "$0" 2>/dev/null"#, folder], program: "unshare") else {
        return false
      }
      _ = child.rest()
      return child.end(kills: false) == .exited(0)
    }
  }

  static func runChild(_ words: [String]) async throws {
    guard words.count == 4, let condition = Condition(rawValue: words[0]), let seed = UInt64(words[2]) else {
      throw FailedCheck("'environment' needs a condition, a folder, a seed and 'mounted' or 'plain'")
    }
    do {
      for line in try await condition.run(TrialFolder(path: words[1], seed: seed, isMounted: words[3] == "mounted")) {
        Children.tell(line)
      }
    } catch {
      Children.tell("\(error)")
      exit(1)
    }
  }
}

/// The location of a trial.
struct TrialFolder: Sendable {
  var path: String
  var seed: UInt64
  /// Whether the location is a separate file system.
  var isMounted: Bool
}

/// The condition that a trial creates.
enum Condition: String, CaseIterable {
  case full, inodes, quota, readOnly = "read-only", descriptors, removed, permissions, slow, clock

  /// The mount options of the file system that the condition needs, if any.
  var mountOptions: String? {
    switch self {
    case .full: "size=6m"
    case .inodes: "size=64m,nr_inodes=450"
    case .readOnly: "size=64m"
    default: nil
    }
  }

  func run(_ place: TrialFolder) async throws -> [String] {
    switch self {
    case .full, .inodes:
      place.isMounted ? try await place.fill() : try await place.refuse(ENOSPC, "no file system can be mounted")
    case .quota: try await place.refuse(EDQUOT, "no quota can be set") + place.limitFileSize()
    case .readOnly:
      place.isMounted ? try await place.remount() : try await place.refuse(EROFS, "no file system can be mounted")
    case .descriptors: try await place.exhaustDescriptors()
    case .removed: try await place.removeFolder()
    case .permissions: try await place.takePermissions()
    case .slow: try await place.slowDown()
    case .clock: try await place.turnClock()
    }
  }
}
