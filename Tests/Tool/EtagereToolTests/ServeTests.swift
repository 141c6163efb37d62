#if Tool && Service
import AsyncHTTPNetworking
import CacheTesting
import Etagere
import Foundation
import HTTPTypes
import Testing

/// `etagere-cli serve` in a process of its own, with a folder of images and a file of keys.
final class RunningService: Sendable {
  /// The type of an image for a client that accepts WebP, which ImageIO does not write.
  static var typeOfWebP: String { ImageEncoder.isWritten(.webp) ? "image/webp" : "image/jpeg" }

  let fixture: ToolFixture
  let address: String
  let metrics: String
  private let process: Process
  private let downloader: AsyncHTTPDownloader

  convenience init(_ arguments: String...) async throws { try await self.init(arguments) }

  /// - Parameter output: The file for standard output, or `nil` for one that ``log`` reads.
  init(_ arguments: [String], output: String? = nil) async throws {
    downloader = try AsyncHTTPDownloader(
      configuration: .init { ($0.connectTimeout, $0.idleTimeout) = (.seconds(600), .seconds(600)) })
    fixture = try ToolFixture()
    let keys = try fixture.write(String(repeating: "01", count: 32), "keys")
    try FileManager.default.createDirectory(atPath: "\(fixture.path)/images", withIntermediateDirectories: true)
    let image = PixelBuffer(size: PixelSize(40, 30), channels: .rgb) { memory in
      for index in memory.indices { memory[index] = UInt8(truncatingIfNeeded: index) }
    }
    try ImageEncoder.png.encode(DecodedImage(try #require(image))).write(to: URL(filePath: "\(fixture.path)/images/a.png"))
    process = Process()
    process.executableURL = try ToolFixture.executable()
    process.arguments =
      ["serve", "--folder", "site=\(fixture.path)/images", "--keys-file", keys, "--listen", "127.0.0.1:0"]
      // The tests keep all processors busy.
      + (arguments.contains("--worker-priority") ? [] : ["--worker-priority", "normal"])
      + (arguments.contains("--drain-time") ? [] : ["--drain-time", "0"]) + arguments
    let errors = try fixture.write("", "errors")
    process.standardError = try FileHandle(forWritingTo: URL(filePath: errors))
    process.standardOutput = try FileHandle(forWritingTo: URL(filePath: output ?? fixture.write("", "log")))
    try process.run()
    let (fixture, process) = (fixture, process)
    func lines() -> [String] { (try? ToolRun.lines(fixture.read("errors"))) ?? [] }
    func address(_ start: String) -> String? { lines().first { $0.hasPrefix(start) }.map { String($0.dropFirst(start.count)) } }
    try await Polling.until { address("etagere-cli: listening on ") != nil || !process.isRunning }
    self.address = try #require(address("etagere-cli: listening on "), "\(lines())")
    if arguments.contains("--admin") { try await Polling.until { address("etagere-cli: metrics on ") != nil } }
    metrics = address("etagere-cli: metrics on ") ?? ""
  }

  deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

  func get(_ url: String, _ fields: HTTPFields = [:]) async throws -> (status: Int, fields: HTTPFields, data: Data) {
    try await send(.get, url, fields)
  }

  func send(
    _ method: HTTPRequest.Method, _ url: String, _ fields: HTTPFields = [:], body: String? = nil
  ) async throws -> (status: Int, fields: HTTPFields, data: Data) {
    var head = HTTPRequest(method: method, url: try #require(URL(string: url)))
    head.headerFields = fields
    let response = try await downloader.download(DownloadRequest(head: head, body: body.map { ResourceBody(Data($0.utf8)) }))
    return (response.head.status.code, response.head.headerFields, try await response.body.collect())
  }

  func sign(_ source: String, _ operations: String) async throws -> String {
    let run = try await fixture.run(["sign", source, "-o", operations, "--keys-file", "\(fixture.path)/keys"])
    #expect(run.status == 0)
    return "http://\(address)\(try #require(run.lines.first))"
  }

  var errors: [String] { get throws { ToolRun.lines(try fixture.read("errors")) } }
  var log: [String] { get throws { ToolRun.lines(try fixture.read("log")) } }

  var processIdentifier: Int32 { process.processIdentifier }

  func signal(_ signal: Int32) { kill(process.processIdentifier, signal) }

  /// Ends the process and returns its status.
  func stop(_ signal: Int32 = SIGTERM) async throws -> Int32 {
    self.signal(signal)
    let process = process
    try await Polling.until { !process.isRunning }
    await downloader.close()
    return process.terminationStatus
  }
}

@Suite("etagere-cli serve", .timeLimit(.minutes(30)))
struct ServeTests {
  @Test("a signed URL gets an image, and the second request gets it from the cache")
  func images() async throws {
    let service = try await RunningService("--preset", "small=width=20")
    let url = try await service.sign("site/a.png", "preset=small")
    for cacheStatus in ["Etagere;fwd=uri-miss;", "Etagere;hit;"] {
      let response = try await service.get(url, [.accept: "image/webp"])
      #expect(response.status == 200)
      #expect(try ImageHeader(of: response.data).size == PixelSize(20, 15))
      #expect(response.fields[.contentType] == RunningService.typeOfWebP)
      #expect(try response.fields[#require(HTTPField.Name("Cache-Status"))]?.hasPrefix(cacheStatus) == true)
    }
    #expect(try await service.get("http://\(service.address)/img/x/gray/site%2Fa.png").status == 403)
    // At its end, the process writes the log for a second at most.
    try await Polling.until { try service.log.count >= 3 }
    #expect(try await service.stop() == 0)
    let log = try service.log
    #expect(log.count == 3)
    #expect(log.last?.contains(#""status":403"#) == true)
    // A reader of the log must not be able to use the URL.
    #expect(!log.joined().contains(url.split(separator: "/")[3]))
  }

  @Test("the state and the metrics are readable")
  func operation() async throws {
    let service = try await RunningService("--admin", "127.0.0.1:0", "--access-log", "false")
    let (health, ready) = (
      try await service.get("http://\(service.address)/healthz"), try await service.get("http://\(service.address)/readyz")
    )
    #expect(health.status == 200 && ready.status == 200)
    #expect(try await service.get("http://\(service.address)/metrics").status == 404)
    _ = try await service.get(try await service.sign("site/a.png", "gray"))
    // A request is counted when its response was sent, which may be after the client has it.
    try await Polling.until {
      let metrics = String(decoding: try await service.get(service.metrics).data, as: UTF8.self)
      return metrics.contains(#"http_request_duration_seconds_count{route="/img/**",status="200"} 1"#)
        && metrics.contains("etagere_results_in_progress 0") && !metrics.contains("etagere_fleet_current")
    }
    #expect(try await service.stop(SIGINT) == 0)
    #expect(try service.log.isEmpty)
  }

  @Test("a purge by source at the administration's address removes a result")
  func purge() async throws {
    let service = try await RunningService("--admin", "127.0.0.1:0")
    let url = try await service.sign("site/a.png", "gray")
    _ = try await service.get(url)
    let purge = service.metrics.replacing("/metrics", with: "/purge")
    let done = try await service.send(.post, purge + "?source=site%2Fa.png")
    #expect(done.status == 200)
    #expect(String(decoding: done.data, as: UTF8.self) == "1\n")
    #expect(try await service.get(url).fields[#require(HTTPField.Name("Cache-Status"))]?.contains("fwd=uri-miss") == true)
    #expect(String(decoding: try await service.send(.post, purge + "?tag=none&mode=soft").data, as: UTF8.self) == "0\n")
    for query in ["", "?tag=a&source=b", "?source=nowhere", "?tag=a&mode=sotf", "?tag=a&tag=b"] {
      #expect(try await service.send(.post, purge + query).status == 400, "\(query)")
    }
    #expect(try await service.send(.post, "http://\(service.address)/purge?tag=a").status == 404)
    let site = try #require(HTTPField.Name("Sec-Fetch-Site"))
    let (own, rebound) = (purge.replacing("/purge", with: ""), try #require(HTTPField.Name("Host")))
    for (fields, status) in [
      ([site: "cross-site"], 403), ([site: "same-site"], 403), ([.origin: "http://evil.example"], 403), ([.origin: "null"], 403),
      ([rebound: "evil.example", .origin: "http://evil.example"], 403), ([site: "same-origin", .origin: own], 200),
    ] as [(HTTPFields, Int)] {
      #expect(try await service.send(.post, purge + "?tag=none", fields).status == status, "\(fields)")
    }
    #expect(try await service.stop() == 0)
  }

  @Test("SIGHUP reads the keys again, and keys that are not valid leave the current ones")
  func reload() async throws {
    let service = try await RunningService()
    let old = try await service.sign("site/a.png", "gray")
    try service.fixture.write(String(repeating: "02", count: 32) + "\n" + String(repeating: "01", count: 32), "keys")
    service.signal(SIGHUP)
    try await Polling.until { ((try? service.errors) ?? []).contains("etagere-cli: 2 signing keys read") }
    let new = try await service.sign("site/a.png", "gray")
    #expect(new != old)
    #expect(try await service.get(old).status == 200)
    #expect(try await service.get(new).status == 200)
    try service.fixture.write("none", "keys")
    service.signal(SIGHUP)
    try await Polling.until { ((try? service.errors) ?? []).contains { $0.contains("the signing keys are unchanged") } }
    #expect(try await service.get(new).status == 200)
    #expect(try await service.stop() == 0)
  }

  @Test("during the shutdown, the service still responds, and says that it is not ready")
  func draining() async throws {
    let service = try await RunningService("--drain-time", "300")
    #expect(try await service.get("http://\(service.address)/readyz").status == 200)
    service.signal(SIGTERM)
    try await Polling.until { try await service.get("http://\(service.address)/readyz").status == 503 }
    #expect(try await service.get(try await service.sign("site/a.png", "gray")).status == 200)
    #expect(try await service.stop(SIGKILL) == SIGKILL)
  }

  @Test("a request that fails is in the log with its reason")
  func failures() async throws {
    let service = try await RunningService()
    #expect(try await service.get(try await service.sign("site/none.png", "gray")).status == 404)
    #expect(try await service.send(.post, "http://\(service.address)/img/a/b/c").status == 405)
    #expect(try await service.stop() == 0)
    #expect(try service.log.first?.contains(#""error":"unacceptableStatus"#) == true)
  }

  @Test("a full disk under the log does not end the service", .enabled(if: FileManager.default.fileExists(atPath: "/dev/full")))
  func fullDisk() async throws {
    let service = try await RunningService([], output: "/dev/full")
    for _ in 0..<20 { #expect(try await service.get("http://\(service.address)/healthz").status == 200) }
    #expect(try await service.stop() == 0)
  }

  @Test("a setting that cannot be used ends the command with its name")
  func invalid() async throws {
    let fixture = try ToolFixture()
    let keys = try fixture.write(String(repeating: "01", count: 32), "keys")
    let cases: [(arguments: [String], reason: String)] = [
      ([], "source"), (["--folder", "a=\(fixture.path)"], "key"), (["--keys-file", "\(fixture.path)/none"], "none"),
      (["--keys-file", keys, "--folder", "a=/nowhere"], "/nowhere"), (["--keys-file", keys, "--origin", "x"], "'x'"),
      (["--keys-file", keys, "--listen", "x"], "listen"), (["--config", "\(fixture.path)/none"], "none"),
      (["--keys-file", keys, "--folder", "a=\(fixture.path)", "--preset", "p=blur=0"], "preset 'p'"),
    ]
    for (arguments, reason) in cases {
      let run = try await fixture.run(["serve"] + arguments)
      #expect(run.status == 64, "\(arguments)")
      #expect(run.errors.count == 1 && run.errors[0].contains(reason), "\(run.errors)")
    }
  }

  @Test("keys that other users can read cause a warning, and the command goes on", arguments: [0o600, 0o640, 0o604])
  func openKeys(_ mode: Int) async throws {
    // Given
    let fixture = try ToolFixture()
    let key = String(repeating: "01", count: 32)
    let files = [try fixture.write(key, "keys"), try fixture.write(#"{"keys": ["\#(key)"]}"#, "settings.json")]
    for file in files { try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file) }

    // When
    let sign = try await fixture.run(["sign", "site/a.png", "--keys-file", files[0]])
    let serve = try await fixture.run(["serve", "--config", files[1], "--folder", "a=/nowhere"])

    // Then
    let warned = mode == 0o600 ? [] : files.map { "etagere-cli: warning: other users can read or write the keys in '\($0)'" }
    #expect(sign.status == 0 && sign.lines.count == 1)
    #expect(sign.errors.map { $0.replacing(" (see 'chmod 600')", with: "") } == Array(warned.prefix(1)))
    #expect(serve.status == 64 && serve.errors.count == warned.suffix(1).count + 1)
    #expect(warned.isEmpty || serve.errors[0].hasPrefix(warned[1]))
  }

  @Test("an operation that is not valid is not signed")
  func signing() async throws {
    let fixture = try ToolFixture()
    let keys = try fixture.write(String(repeating: "01", count: 32), "keys")
    let invalid = try await fixture.run(["sign", "site/a.png", "-o", "width=0", "--keys-file", keys])
    #expect(invalid.status == 64 && invalid.errors.first?.contains("width") == true)
    let unsigned = try await fixture.run(["sign", "site/a.png"])
    #expect(unsigned.status == 64 && unsigned.errors.first?.contains("ETAGERE_KEYS") == true)
    let preset = try await fixture.run(["sign", "site/a.png", "-o", "preset=a,gray", "--keys-file", keys, "--expires", "60"])
    #expect(preset.status == 0 && preset.lines.first?.contains("/preset=a,gray,expires=") == true)
  }
}
#endif
