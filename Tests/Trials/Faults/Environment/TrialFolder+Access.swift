import CacheCore
import DiskStore
import Foundation

/// Conditions in which existing files cannot be accessed.
extension TrialFolder {
  /// Makes the folder read-only: remounted while it is closed, and under a read-only mount while it is open.
  func remount() async throws -> [String] {
    let store = path + "/store"
    try await hide(store)
    try Self.mount(["-o", "remount,ro", path])
    let later = ManagerFixture(try DiskCache(path: store, configuration: .init(sizeLimit: nil)), seed: seed)
    try await readOnly(later)
    try Self.mount(["-o", "remount,rw", path])
    try await later.recover()
    await later.close()
    return [
      "mounted read-only while closed and while open: stored entries are served, 800 loads, 0 failed; recovered"
    ]
  }

  /// Stores 200 entries and closes the folder, because an open one could not be mounted read-only.
  private func hide(_ store: String) async throws {
    let fixture = ManagerFixture(try DiskCache(path: store, configuration: .init(sizeLimit: nil)), seed: seed)
    try await fixture.load(0..<200)
    try Self.mount(["--bind", store, store])
    try Self.mount(["-o", "remount,bind,ro", store])
    try await readOnly(fixture)
    try Self.run("umount", [store])
    try await fixture.recover()
    try await fixture.disk.removeAll()
    try await fixture.load(0..<200)
    await fixture.close()
  }

  /// Checks that the first 200 resources are served and the others cannot be stored.
  private func readOnly(_ fixture: ManagerFixture) async throws {
    try require(!fixture.disk.isWritable, "the folder is writable")
    let asked = try await fixture.load().asked
    try require(asked == 200, "\(asked) of 400 loads went to the network, but 200 are not stored")
    let error = await fixture.storingFails()
    try require(error?.code == .readOnly && error?.path != nil, "a read-only store throws \(String(describing: error))")
  }

  private static func mount(_ words: [String]) throws { try run("mount", words) }

  private static func run(_ program: String, _ words: [String]) throws {
    let child = try Child(words, program: program)
    let told = child.rest()
    try require(child.end(kills: false) == .exited(0), "\(program) \(words): \(told)")
  }

  /// Uses up all file descriptors.
  func exhaustDescriptors() async throws -> [String] {
    let fixture = ManagerFixture(try DiskCache(path: path + "/store", configuration: .init(sizeLimit: nil)), seed: seed)
    // The first loads create the threads and the files that they open.
    try await fixture.load(0..<200)
    let key = try await fixture.disk.entries().first?.key ?? CacheKey(resource: "")
    try Self.limit(.descriptors, to: 128)
    var open: [Int32] = []
    while true {
      let descriptor = Foundation.open("/dev/null", O_RDONLY | O_CLOEXEC)
      if descriptor < 0 { break }
      open.append(descriptor)
    }
    let asked = try await fixture.load().asked
    var reading: CacheError?
    do { _ = try await fixture.disk.entry(for: key) } catch { reading = error }
    let storing = await fixture.storingFails()
    for descriptor in open { close(descriptor) }
    for error in [reading, storing] {
      try require(
        error?.code == .fileSystem && error?.errno == EMFILE && error?.path != nil,
        "a store without descriptors throws \(String(describing: error))")
    }
    try await fixture.recover()
    await fixture.close()
    return ["\(open.count) descriptors opened, none left: 400 loads, \(asked) of them from the network, 0 failed; recovered"]
  }

  /// Removes the folder or a part of it, or replaces it with something else.
  func removeFolder() async throws -> [String] {
    let store = path + "/store"
    let outside = path + "/outside"
    try FileManager.default.createDirectory(atPath: outside, withIntermediateDirectories: true)
    try Data("a".utf8).write(to: URL(filePath: outside + "/a"))
    let fixture = ManagerFixture(try DiskCache(path: store, configuration: .init(sizeLimit: nil)), seed: seed)
    let inside = ["", "/etagere-1", "/etagere-1/entries", "/etagere-1/tmp", "/etagere-1/generation", "/etagere-1/folder.key"]
    for part in inside {
      for replaced in ["nothing", "a file", "a link"] {
        try await fixture.halve()
        try? FileManager.default.removeItem(atPath: store + part)
        if replaced == "a file" { try Data("b".utf8).write(to: URL(filePath: store + part)) }
        if replaced == "a link" { try FileManager.default.createSymbolicLink(atPath: store + part, withDestinationPath: outside) }
        do {
          try await fixture.load()
          if replaced != "nothing" { try? FileManager.default.removeItem(atPath: store + part) }
          try await fixture.recover()
        } catch {
          throw FailedCheck("'\(part)' replaced by \(replaced): \(error)")
        }
        let left = Folder.files(outside)
        // The given folder may be a link, and then the store is at its target.
        try require(part.isEmpty || left.map(\.path) == [outside + "/a"], "'\(part)' was a link, and \(left) are outside")
        if part.isEmpty { try? FileManager.default.removeItem(atPath: outside + "/etagere-1") }
      }
    }
    await fixture.close()
    return [
      "the folder and its parts removed, or replaced by a file or a link: \(inside.count * 3) times, 0 loads failed; recovered"
    ]
  }

  /// Takes permissions away from a user that they apply to.
  func takePermissions() async throws -> [String] {
    var note = ""
    if geteuid() == 0 {
      // Permissions do not bind root.
      try require(chown(path, 65_534, 65_534) == 0, "cannot change the owner of the folder")
      try require(setgid(65_534) == 0 && setuid(65_534) == 0, "cannot become another user")
      guard access(path, W_OK) == 0 else { return ["not run: only root can reach the folder"] }
      note = " (as user 65534)"
    }
    let store = path + "/store"
    let fixture = ManagerFixture(try DiskCache(path: store, configuration: .init(sizeLimit: nil)), seed: seed)
    var count = 0
    for part in ["", "/etagere-1", "/etagere-1/entries", "/etagere-1/tmp"] {
      for rights in [0o000, 0o400, 0o500, 0o600] as [mode_t] {
        try await fixture.halve()
        try require(chmod(store + part, rights) == 0, "cannot change permissions")
        do {
          try await fixture.load()
          if rights == 0o500, part == "/etagere-1" {
            let error = await fixture.storingFails()
            try require(error?.code == .readOnly, "a store without permissions throws \(String(describing: error))")
          }
          if rights == 0 {
            let error = await fixture.storingFails()
            try require(error != nil && error?.path != nil, "a store without permissions throws \(String(describing: error))")
          }
          chmod(store + part, 0o700)
          try await fixture.recover()
        } catch {
          throw FailedCheck("'\(part)' with permissions \(String(rights, radix: 8)): \(error)")
        }
        count += 1
      }
    }
    await fixture.close()
    return ["permissions of the folder and its parts taken \(count) times\(note): 0 loads failed; recovered"]
  }
}
