import CacheCore
import CacheManager
import CacheTesting
import DiskStore
import Foundation
import HTTPTypes
import Testing

@Suite("Stored variants in files")
struct VariantOnDiskTests {
  private let shop = TextTransformFixture()

  /// Creates a manager, loads and closes, as a program does in each run.
  private func run(_ folder: DownloadFolder, _ fixture: ManagerFixture, _ options: RequestOptions) async throws -> Resource<
    String
  > {
    let disk = try DiskCache(folder: folder.url, configuration: .init(clock: fixture.clock))
    var options = options
    (options.store, options.memory) = (.use(disk), .disabled)
    let resource = try await fixture.load(shop.short(), options)
    await disk.close()
    return resource
  }

  private func transforms(_ folder: DownloadFolder) -> [URL] {
    (FileManager.default.subpaths(atPath: folder.url.path) ?? []).filter { $0.hasSuffix(".f") }.map {
      folder.url.appending(path: $0)
    }
  }

  @Test("a variant is found after a restart, confirmed by a 304, and removed when the original changes")
  func restarts() async throws {
    let (fixture, folder) = (try ManagerFixture(), try DownloadFolder())
    fixture.network.respond(
      to: fixture.url, with: .ok("abcdefgh", etag: "\"1\"", cacheControl: "max-age=60"), .notModified(cacheControl: "max-age=60"),
      .ok("uvwxyz", etag: "\"2\"", cacheControl: "max-age=60"))
    let options = RequestOptions.keeping(.variants)

    var seen = [try await run(folder, fixture, options).origins]
    seen.append(try await run(folder, fixture, options).origins)
    fixture.clock.advance(by: .seconds(61))
    seen.append(try await run(folder, fixture, options).origins)
    seen.append(try await run(folder, fixture, options).origins)
    fixture.clock.advance(by: .seconds(61))
    let changed = try await run(folder, fixture, options)

    #expect(seen == ["network transformed", "disk disk", "revalidated disk", "disk disk"])
    #expect(changed.value == "UV" && changed.origins == "network transformed")
    #expect(transforms(folder).count == 1 && fixture.network.conditional == 2)
    #expect(try await run(folder, fixture, options).value == "UV")
  }

  @Test("a variant is made from the original again if its file is damaged")
  func damaged() async throws {
    let (fixture, folder) = (try ManagerFixture(), try DownloadFolder())
    fixture.network.respond(to: fixture.url, with: .ok("abcdefgh", cacheControl: "max-age=60"))
    let options = RequestOptions.keeping(.all)
    _ = try await run(folder, fixture, options)
    let file = try #require(transforms(folder).first)
    var bytes = try Data(contentsOf: file)
    let place = try #require(bytes.range(of: Data("<AB>".utf8)))
    bytes[place.lowerBound + 1] ^= 1
    try bytes.write(to: file)

    let healed = try await run(folder, fixture, options)

    #expect(healed.value == "AB" && healed.origins == "disk transformed")
    #expect(try await run(folder, fixture, options).origins == "disk disk")
    try fixture.network.verify()
  }
}
