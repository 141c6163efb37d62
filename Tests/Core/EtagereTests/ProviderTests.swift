import CacheTesting
import Etagere
import Foundation
import Testing

@Suite("The folder and the scheme handlers of a standard manager")
struct ProviderTests {
  @Test("a folder that is a file is an error that names it")
  func folderIsAFile() throws {
    let folder = try TemporaryFolder()
    let file = folder.url.appending(path: "file")
    try Data("x".utf8).write(to: file)
    let error = #expect(throws: CacheError.self) { _ = try ResourceManager.Configuration.standard(folder: file) }
    #expect(error?.code == .fileSystem)
    #expect(error?.path?.contains(file.path(percentEncoded: false)) == true)
    #expect(error?.errno != nil)
    #expect(try Data(contentsOf: file) == Data("x".utf8))
  }

  @Test("a missing folder is created")
  func folderIsMade() throws {
    let folder = try TemporaryFolder()
    let deep = folder.url.appending(path: "not/yet/there", directoryHint: .isDirectory)
    #expect(try ResourceManager.Configuration.standard(folder: deep).store != nil)
    #expect(FileManager.default.fileExists(atPath: deep.path(percentEncoded: false)))
  }

  #if !canImport(Darwin)
  @Test(
    "the default folder is below XDG_CACHE_HOME, HOME or the registered home, and never relative",
    arguments: [
      ([:], "/home/me", "/home/me/.cache/etagere/"), (["HOME": "/data"], "/home/me", "/data/.cache/etagere/"),
      (["HOME": "/"], nil, "/.cache/etagere/"), (["HOME": "/data", "XDG_CACHE_HOME": "/x"], nil, "/x/etagere/"),
      (["HOME": "/data", "XDG_CACHE_HOME": ""], nil, "/data/.cache/etagere/"),
      (["HOME": "/data", "XDG_CACHE_HOME": "x"], nil, "/data/.cache/etagere/"),
      (["HOME": "data"], "/home/me", "/home/me/.cache/etagere/"),
      (["HOME": ""], "/home/me", "/home/me/.cache/etagere/"), (["HOME": ""], nil, nil), (["HOME": "."], "", nil), ([:], nil, nil),
    ] as [([String: String], String?, String?)])
  func defaultFolder(_ environment: [String: String], _ home: String?, _ expected: String?) {
    #expect(ResourceManager.defaultFolder(environment: environment, home: { home })?.path(percentEncoded: false) == expected)
  }
  #endif

  @Test("without a folder, the configuration has no disk store and every other default")
  func withoutFolder() throws {
    let configuration = try ResourceManager.Configuration.standard(folder: nil)
    #expect(configuration.store == nil)
    #expect(configuration.memory != nil && configuration.downloader != nil && configuration.validator != nil)
    #expect(Set(configuration.schemeHandlers.keys) == ["file", "data"])
  }

  @Test("files are loaded by their scheme handler, and no layer stores a copy")
  func files() async throws {
    let folder = try TemporaryFolder()
    let source = try TemporaryFolder()
    let file = source.url.appending(path: "a b.txt")
    try pattern(300_000).write(to: file)
    let manager = try ResourceManager.standard(folder)

    for _ in 0..<2 {
      let resource = try await manager.load(file)
      #expect(resource.data == pattern(300_000))
      #expect(resource.source == .schemeHandler)
    }
    #expect(try await manager.lookup(file) == .miss)
    #expect(folder.entries.isEmpty)

    try Data("changed".utf8).write(to: file)
    #expect(try await manager.load(file).data == Data("changed".utf8))
    try FileManager.default.removeItem(at: file)
    #expect(await failure { _ = try await manager.load(file) }?.code == .fileSystem)
  }

  @Test("a missing file is an error that names it, with every policy that uses the scheme handler")
  func missingFile() async throws {
    let source = try TemporaryFolder()
    let file = source.url.appending(path: "a b.txt")
    let manager = try ResourceManager.standard(TemporaryFolder())

    for policy in [LoadPolicy.standard, .reload, .cacheFirst, .staleWhileRevalidate, .memoryElseReload, .revalidate()] {
      let error = await failure { _ = try await manager.load(file, options: RequestOptions { $0.policy = policy }) }
      #expect(error?.code == .fileSystem && error?.errno == ENOENT && error?.status == nil)
      #expect(error?.path == file.path(percentEncoded: false) && error?.url == file.absoluteString)
      #expect(error?.description == "\(file.absoluteString): No such file or directory")
    }
    let cached = await failure { _ = try await manager.load(file, options: RequestOptions { $0.policy = .cacheOnly }) }
    #expect(cached?.code == .notCached)
    #expect(try await manager.lookup(file) == .miss)
  }

  @Test("a folder, and a file that cannot be read, are errors that name them")
  func unreadableFiles() async throws {
    let source = try TemporaryFolder()
    let manager = try ResourceManager.standard(TemporaryFolder())
    let folder = await failure { _ = try await manager.load(source.url) }
    #expect(folder?.code == .fileSystem && folder?.errno == EISDIR && folder?.path != nil)

    // A link to itself cannot be read, even by the superuser.
    let loop = source.url.appending(path: "loop")
    let path = loop.path(percentEncoded: false)
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path)
    let error = await failure { _ = try await manager.load(loop) }
    #expect(error?.code == .fileSystem && error?.errno == ELOOP && error?.path == path)
  }

  @Test("the alternatives of a missing file are loaded, and requested once")
  func alternativesOfMissingFile() async throws {
    let source = try TemporaryFolder()
    let missing = source.url.appending(path: "missing")
    let observer = RecordingObserver()
    var configuration = try ResourceManager.Configuration.standard(folder: nil)
    configuration.observer = observer
    let manager = ResourceManager(configuration)
    let other = try #require(URL(string: "data:,other"))
    let nowhere = source.url.appending(path: "nowhere")

    let resource = try await manager.load(missing, options: RequestOptions { $0.alternatives = [.mirror(other)] })
    #expect(resource.data == Data("other".utf8))

    let target = source.url.appending(path: "target")
    let before = observer.events.count
    let error = await failure {
      _ = try await manager.load(
        missing, to: target, options: RequestOptions { $0.alternatives = [.mirror(target), .mirror(nowhere)] })
    }
    let asked = observer.events.dropFirst(before).compactMap { event in
      if case .requestSent(let url, _, _, _) = event { url.description } else { nil }
    }
    #expect(error?.path == missing.path(percentEncoded: false))
    #expect(asked == [missing, target, nowhere].map(\.absoluteString))
  }

  @Test("data: URLs are loaded by their scheme handler, and no layer stores a copy")
  func dataURLs() async throws {
    let folder = try TemporaryFolder()
    let manager = try ResourceManager.standard(folder)
    let url = try #require(URL(string: "data:text/plain;base64,SGVsbG8="))
    let resource = try await manager.load(url)
    #expect(resource.data == Data("Hello".utf8))
    #expect(resource.source == .schemeHandler)
    #expect(resource.response.headerFields[.contentType] == "text/plain")
    #expect(try await manager.lookup(url) == .miss)
    #expect(folder.entries.isEmpty)
  }

  @Test(
    "the error of another scheme names it", arguments: ["ftp://example.com/a", "gopher://example.com/", "mailto:a@b.c"])
  func otherSchemes(_ text: String) async throws {
    let manager = try ResourceManager.standard(TemporaryFolder())
    let url = try #require(URL(string: text))
    let error = await failure { _ = try await manager.load(url) }
    #expect(error?.code == .unsupportedScheme)
    #expect(error?.url == text)
  }
}
