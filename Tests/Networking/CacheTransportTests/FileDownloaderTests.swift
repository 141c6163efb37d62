import CacheCore
import CacheTransport
import Foundation
import HTTPTypes
import Testing

@Suite("File downloads")
struct FileDownloaderTests {
  private let folder: TemporaryFolder
  private let downloader = FileDownloader()

  init() throws { folder = try TemporaryFolder() }

  private func download(
    _ url: URL, _ method: HTTPRequest.Method = .get, ifNoneMatch tag: String? = nil
  ) async throws -> DownloadResponse {
    var head = try HTTPRequest(resource: url, method: method)
    head.headerFields[.ifNoneMatch] = tag
    return try await downloader.download(DownloadRequest(head: head))
  }

  private func tag(_ name: String) async throws -> String {
    try #require(try await download(folder.url(name)).head.headerFields[.eTag])
  }

  private func setModified(_ name: String, _ seconds: Double = 784_111_777) throws {
    try FileManager.default.setAttributes(
      [.modificationDate: Date(timeIntervalSince1970: seconds)], ofItemAtPath: folder.url(name).path(percentEncoded: false))
  }

  @Test("a file is returned byte for byte", arguments: [0, 1, 1_000, 262_143, 262_144, 262_145, 3_000_000])
  func bytes(_ size: Int) async throws {
    try folder.put(pattern(size), "file")
    let response = try await download(folder.url("file"))
    #expect(response.head.status == .ok)
    #expect(response.head.headerFields[.contentLength] == String(size))
    #expect(response.body.length == Int64(size))
    #expect(try await response.body.collect() == pattern(size))
  }

  @Test("a large file is streamed in chunks")
  func chunks() async throws {
    try folder.put(pattern(1_000_000), "file")
    let response = try await download(folder.url("file"))
    var sizes: [Int] = []
    for try await chunk in response.body { sizes.append(chunk.count) }
    #expect(sizes == [262_144, 262_144, 262_144, 213_568])
    #expect(response.body.data == nil)
  }

  @Test("a response has the modification date, no-cache, and a strong entity tag, even if the file has just changed")
  func fields() async throws {
    try folder.put(Data("x".utf8), "file")
    try setModified("file")
    let fields = try await download(folder.url("file")).head.headerFields
    #expect(fields[.cacheControl] == "no-cache")
    #expect(fields[.lastModified] == "Sun, 06 Nov 1994 08:49:37 GMT")
    #expect(fields[.eTag]?.hasPrefix("\"1-ae1b981bc490a00-") == true)
    #expect(try await tag("file") == fields[.eTag])
  }

  @Test("a matching If-None-Match gets a 304 without a body", arguments: [HTTPRequest.Method.get, .head])
  func notModified(_ method: HTTPRequest.Method) async throws {
    try folder.put(pattern(1_000), "file")
    let tag = try await tag("file")
    for value in [tag, "W/\(tag)", "\"a\", \(tag)", "\"a\" ,\t\(tag) , \"b\"", "*"] {
      let response = try await download(folder.url("file"), method, ifNoneMatch: value)
      #expect(response.head.status == .notModified, "\(value)")
      #expect(response.head.headerFields[.eTag] == tag && response.head.headerFields[.contentLength] == nil)
      #expect(response.head.headerFields[.cacheControl] == "no-cache")
      #expect(response.body.data == Data())
    }
    for value in ["", "\"a\"", String(tag.dropLast()), "\"\"", "\(tag)x"] {
      #expect(try await download(folder.url("file"), method, ifNoneMatch: value).head.status == .ok, "\(value)")
    }
  }

  @Test("every change of a file leads to another tag", arguments: Change.allCases)
  func changes(_ change: Change) async throws {
    // Given
    try folder.put(Data("before".utf8), "file")
    try folder.put(Data("after!".utf8), "other")
    try setModified("file")
    let tag = try await tag("file")

    // When
    switch change {
    case .content: try folder.put(Data("after!".utf8), "file")
    case .contentWithEarlierTime:
      try folder.put(Data("after!".utf8), "file")
      try setModified("file")
    case .length:
      try folder.put(Data("longer than before".utf8), "file")
      try setModified("file")
    case .time: try setModified("file", 784_111_778)
    case .replacement:
      try setModified("other")
      #expect(
        rename(folder.url("other").path(percentEncoded: false), folder.url("file").path(percentEncoded: false)) == 0)
    }

    // Then
    let response = try await download(folder.url("file"), ifNoneMatch: tag)
    #expect(response.head.status == .ok && response.head.headerFields[.eTag] != tag)
  }

  enum Change: CaseIterable { case content, contentWithEarlierTime, length, time, replacement }

  @Test("copies of a file on several machines have an equal tag if that is requested")
  func copies() async throws {
    for name in ["one", "two"] {
      try folder.put(Data("same".utf8), name)
      try setModified(name)
    }
    let copies = FileDownloader(forCopies: true)
    for name in ["one", "two"] {
      let response = try await copies.download(DownloadRequest(head: HTTPRequest(resource: folder.url(name))))
      #expect(response.head.headerFields[.eTag] == "\"4-ae1b981bc490a00\"")
    }
    #expect(try await tag("one") != tag("two"))
  }

  @Test(
    "a missing file is an error with the path and the reason",
    arguments: [("missing", ENOENT), ("missing/below", ENOENT), ("file/below", ENOTDIR)])
  func missing(_ name: String, _ number: Int32) async throws {
    try folder.put(Data("x".utf8), "file")
    let error = await failure { _ = try await download(folder.url(name)) }
    #expect(error?.code == .fileSystem && error?.errno == number)
    #expect(error?.path == folder.url(name).path(percentEncoded: false))
    #expect(error?.reason == String(cString: strerror(number)))
    #expect(error?.status == nil)
  }

  @Test("a folder is an error with its path")
  func folders() async throws {
    let url = URL(filePath: folder.path, directoryHint: .isDirectory)
    let error = await failure { _ = try await download(url) }
    #expect(error?.code == .fileSystem)
    #expect(error?.path?.hasPrefix(folder.path) == true)
    #expect(error?.reason == "not a regular file")
    #expect(error?.errno == EISDIR)
  }

  @Test("a device or a FIFO is refused, and is not opened")
  func specialFiles() async throws {
    // A FIFO that was opened for reading would block, because no process writes to it.
    #expect(mkfifo(folder.url("fifo").path(percentEncoded: false), 0o600) == 0)
    let paths = [folder.url("fifo"), URL(filePath: "/dev/null"), URL(filePath: "/dev/tty"), URL(filePath: "/dev/zero")]
    for url in paths {
      let error = await failure { _ = try await download(url) }
      #expect(error?.code == .fileSystem && error?.errno == ENXIO && error?.reason == "not a regular file", "\(url)")
    }
  }

  @Test("a file that cannot be opened is an error with the path and the reason")
  func unreadable() async throws {
    // A link to itself, which even the superuser cannot open.
    let path = folder.url("loop").path(percentEncoded: false)
    try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: path)
    let error = await failure { _ = try await download(folder.url("loop")) }
    #expect(error?.code == .fileSystem)
    #expect(error?.path == path)
    #expect(error?.errno != nil)
    #expect(error?.reason.isEmpty == false)
  }

  @Test("a file that shrinks during the read ends with an error")
  func shrinking() async throws {
    // Given
    try folder.put(pattern(600_000), "file")
    let response = try await download(folder.url("file"))
    var chunks = response.body.makeAsyncIterator()
    #expect(try await chunks.next()?.count == 262_144)

    // When
    let handle = try FileHandle(forWritingTo: folder.url("file"))
    try handle.truncate(atOffset: 300_000)
    try handle.close()

    // Then
    #expect(try await chunks.next()?.count == 300_000 - 262_144)
    let error = await failure { _ = try await response.body.collect() }
    #expect(error?.code == .truncatedBody)
    #expect(error?.description.contains("300000 of 600000") == true)
  }

  @Test("a file that grows during the read is read up to the announced length")
  func growing() async throws {
    try folder.put(pattern(1_000), "file")
    let response = try await download(folder.url("file"))
    let handle = try FileHandle(forWritingTo: folder.url("file"))
    try handle.seekToEnd()
    try handle.write(contentsOf: Data("more".utf8))
    try handle.close()
    #expect(try await response.body.collect() == pattern(1_000))
  }

  @Test("a file that is replaced or removed during the read is read as it was opened")
  func replaced() async throws {
    try folder.put(pattern(600_000), "file")
    let response = try await download(folder.url("file"))
    try FileManager.default.removeItem(at: folder.url("file"))
    try folder.put(Data("other".utf8), "file")
    #expect(try await response.body.collect() == pattern(600_000))
  }

  @Test("a file may have any name", arguments: ["a b", "ü", "100%", "a#b", "a?b", "%41", "a;b=c&d"])
  func names(_ name: String) async throws {
    try folder.put(Data(name.utf8), name)
    #expect(try await download(folder.url(name)).body.collect() == Data(name.utf8))
  }

  @Test("a NUL in the path does not open another file")
  func nul() async throws {
    try folder.put(Data("secret".utf8), "file")
    let url = try #require(URL(string: folder.url("file").absoluteString + "%00.png"))
    #expect(await failure { _ = try await download(url) }?.code == .invalidURL)
  }

  @Test("HEAD returns no body, and other methods are refused", arguments: [HTTPRequest.Method.head, .post, .delete])
  func methods(_ method: HTTPRequest.Method) async throws {
    try folder.put(pattern(1_000), "file")
    let response = try await download(folder.url("file"), method)
    #expect(response.head.status == (method == .head ? .ok : .methodNotAllowed))
    #expect(response.head.headerFields[.contentLength] == (method == .head ? "1000" : nil))
    #expect(try await response.body.collect().isEmpty)
  }

  @Test("a cancelled read ends")
  func cancelled() async throws {
    try folder.put(pattern(600_000), "file")
    let response = try await download(folder.url("file"))
    var chunks = response.body.makeAsyncIterator()
    _ = try await chunks.next()
    response.body.source.cancel()
    #expect(await failure { _ = try await response.body.collect() }?.isCancellation == true)

    let gate = AsyncStream<Void>.makeStream()
    let url = folder.url("file")
    let task = Task { [downloader] in
      for await _ in gate.stream {}
      return try await downloader.download(DownloadRequest(head: HTTPRequest(resource: url)))
    }
    task.cancel()
    gate.continuation.finish()
    #expect(await failure { _ = try await task.value }?.isCancellation == true)
  }

  @Test("only file URLs are accepted", arguments: ["http://example.com/a", "data:,a"])
  func otherSchemes(_ text: String) async throws {
    let url = try #require(URL(string: text))
    #expect(await failure { _ = try await download(url) }?.code == .unsupportedScheme)
  }

  @Test("all file downloaders are equal")
  func identity() {
    #expect(FileDownloader().id == FileDownloader().id)
    #expect(FileDownloader().id != DataURLDownloader().id)
  }
}
