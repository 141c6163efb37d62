#if Tool
import CacheTesting
import Etagere
import Foundation
import LoopbackOrigin
import Testing

@Suite("etagere-cli get --output", .timeLimit(.minutes(30)))
struct OutputTests {
  @Test("-o FILE writes the body and replaces an existing file")
  func file() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      origin.setRoute("/a.bin", Route(bytes(200_000)))
      try fixture.write("old, and not as long", "target")

      // When
      let run = try await fixture.etagere("get", origin.url("/a.bin").absoluteString, "-o", "target")

      // Then
      #expect(run.status == 0)
      #expect(try fixture.read("target") == bytes(200_000))
    }
  }

  @Test("-o FILE continues after its last whole block if the process was terminated or killed", arguments: [SIGTERM, SIGKILL])
  func continues(signal: Int32) async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      let body = bytes(3_000_000)
      let gate = Gate()
      let held = OriginDelivery(bodyGate: gate, bodyGateOffset: 1_500_000)
      origin.setRoute(
        "/film",
        Route(inTurn: [
          OriginResponse(body, etag: "v1", acceptsRanges: true, delivery: held),
          OriginResponse(body, etag: "v1", acceptsRanges: true),
        ]))
      let url = origin.url("/film").absoluteString
      let folder = fixture.path + "/downloads"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
      let process = Process()
      process.executableURL = try ToolFixture.executable()
      process.arguments = ["get", "-q", url, "-o", "\(folder)/film", "--cache-dir", fixture.cache]
      process.environment = ProcessInfo.processInfo.environment.filter { !$0.key.lowercased().hasSuffix("_proxy") }
      let (ends, end) = AsyncStream<Int32>.makeStream()
      process.terminationHandler = { end.yield($0.terminationStatus) }
      try process.run()
      try await Polling.until {
        let part = try? FileManager.default.attributesOfItem(atPath: "\(folder)/.film.etagere-part")
        return part?[.size] as? Int ?? 0 >= 5 * 262_144
      }

      // When
      #expect(kill(process.processIdentifier, signal) == 0)
      #expect(await ends.first { _ in true } == signal)
      gate.open()
      let run = try await fixture.etagere("get", "--json", url, "-o", "\(folder)/film")

      // Then
      let document = try #require(try run.documents(LoadDocument.self).first)
      #expect(document.bytes == 3_000_000 && document.bytesOnWire == 3_000_000 - 5 * 262_144)
      #expect(try fixture.read("downloads/film") == body)
      #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["film"])
    }
  }

  @Test("-o FOLDER/ creates the folder, and numbers equal file names")
  func collisions() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      let paths = ["/1/a.png", "/2/a.png", "/3/a.png", "/4/plain", "/5/plain", "/", "/6/sp%20ace%2Fslash"]
      for (index, path) in paths.enumerated() { origin.setRoute(path, Route(bytes(10 + index, seed: index))) }

      // When
      let urls = paths.map { origin.url($0).absoluteString }
      let run = try await fixture.run(
        ["get", "--json", "--parallel", "1", "-o", "new/folder/", "--cache-dir", fixture.cache] + urls)

      // Then
      #expect(run.status == 0)
      #expect(run.errors.isEmpty)
      let names = try run.documents(LoadDocument.self).map { $0.file.map { URL(filePath: $0).lastPathComponent } }
      #expect(names == ["a.png", "a-2.png", "a-3.png", "plain", "plain-2", "resource-6", "sp ace_slash"])
      for (index, name) in names.enumerated() {
        #expect(try fixture.read("new/folder/\(#require(name))") == bytes(10 + index, seed: index))
      }
    }
  }

  @Test("-o is a folder for several URLs, and if the folder exists")
  func folders() async throws {
    // Given
    let fixture = try ToolFixture()
    try FileManager.default.createDirectory(atPath: fixture.path + "/existing", withIntermediateDirectories: false)

    // When
    let several = try await fixture.etagere("get", "data:,a", "data:,b", "-o", "several")
    let one = try await fixture.etagere("get", "data:,c", "-o", "existing")

    // Then
    #expect(several.status == 0)
    #expect(one.status == 0)
    #expect(try fixture.read("several/resource-1") == Data("a".utf8))
    #expect(try fixture.read("several/resource-2") == Data("b".utf8))
    #expect(try fixture.read("existing/resource-1") == Data("c".utf8))
  }

  @Test("-o - writes the body to standard output and the line to standard error")
  func standardOutput() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      let body = bytes(300_000) + Data("\n\r\n\0".utf8)
      origin.setRoute("/a", Route(body))
      let url = origin.url("/a").absoluteString

      // When
      let run = try await fixture.etagere("get", url, "-o", "-")

      // Then
      #expect(run.status == 0)
      #expect(run.output == body)
      #expect(run.errors.count == 1)
      #expect(run.errors.first?.hasPrefix("network         200 ") == true)
    }
  }

  @Test("--json prints one line for each resource, also for a failed one")
  func json() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      origin.setRoute("/a", Route(bytes(1_234), etag: "v1"))
      let (good, bad) = (origin.url("/a").absoluteString, origin.url("/missing").absoluteString)

      // When
      let run = try await fixture.etagere("get", "--json", "--parallel", "1", good, bad)

      // Then
      let documents = try run.documents(LoadDocument.self)
      #expect(documents.map(\.url) == [good, bad])
      #expect(documents.map(\.status) == [200, 404])
      #expect(documents.map(\.bytes) == [1_234, nil])
      #expect(documents[0].error == nil)
      #expect(documents[1].error?.code == "unacceptable-status")
      #expect(documents[1].error?.exitStatus == 69)
      #expect(documents[1].error.map { ["etagere-cli: \($0.message)"] } == run.errors)
      #expect(run.status == 69)
    }
  }

  @Test(
    "an output that cannot be written has the status 73, and the response is cached", arguments: ["file/below", "missing/below"])
  func unwritable(_ target: String) async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      try fixture.write("in the way", "file")
      origin.setRoute("/a", Route(bytes(10), fields: [.cacheControl: "max-age=3600"]))
      let url = origin.url("/a").absoluteString

      // When
      let run = try await fixture.etagere("get", url, "-o", target)

      // Then
      #expect(run.status == 73)
      #expect(run.lines.isEmpty)
      #expect(run.errors.count == 1)
      #expect(run.errors.first?.hasPrefix("etagere-cli: cannot write '\(target)': No") == true)
      #expect(try await fixture.etagere("get", "--policy", "cache-only", url).status == 0)
    }
  }

  @Test("-o and --trace write what the path names: a link, a FIFO, a file with its permissions")
  func specialFiles() async throws {
    // Given
    let fixture = try ToolFixture()
    try fixture.write("old", "file")
    let script = """
      mkfifo fifo page; ln -s target link; chmod 640 file
      cat fifo >from-fifo & cat page >from-page &
      etagere-cli get -q --cache-dir cache -o fifo data:,hello &&
      etagere-cli get -q --cache-dir cache -o link data:,hello &&
      etagere-cli get -q --cache-dir cache -o file --trace page data:,hello &&
      wait && test -p fifo && test -p page && test -h link && ls -l file | cut -c 1-10
      """

    // When
    let run = try await fixture.shell(script)

    // Then
    #expect(run.status == 0)
    #expect(run.errors.isEmpty)
    #expect(run.lines.last == "-rw-r-----")
    for name in ["from-fifo", "target", "file"] { #expect(try fixture.read(name) == Data("hello".utf8), "\(name)") }
    #expect(try String(decoding: fixture.read("from-page"), as: UTF8.self).hasSuffix("</html>\n"))
  }

  @Test("-o /dev/stdout and /dev/fd/N write to the open descriptor")
  func descriptors() async throws {
    let fixture = try ToolFixture()
    let run = try await fixture.shell(
      """
      etagere-cli get --cache-dir cache -o /dev/stdout data:,hello >file 2>line
      echo first >log; etagere-cli get --cache-dir cache -o /dev/fd/3 data:,hello 3>>log | cat >/dev/null
      etagere-cli get -q --cache-dir cache -o /dev/stdout data:,hello | cat
      """)
    #expect(run.status == 0 && run.output == Data("hello".utf8))
    // The line of the result is not mixed with the bytes, as with -o -.
    #expect(try fixture.read("file") == Data("hello".utf8))
    #expect(try String(decoding: fixture.read("line"), as: UTF8.self).hasPrefix("scheme-handler"))
    #expect(try fixture.read("log") == Data("first\nhello".utf8))
    #expect(try await fixture.etagere("get", "--json", "-o", "/dev/stdout", "data:,a").status == 64)
  }

  @Test("a reader that closes the pipe ends the output without a message")
  func closedPipe() async throws {
    try await withOrigin { origin in
      let fixture = try ToolFixture()
      origin.setRoute("/a", Route(bytes(3_000_000)))
      let run = try await fixture.shell("etagere-cli get --cache-dir cache -o - '\(origin.url("/a"))' 2>errors | head -c 1")
      #expect(run.status == 0 && run.output == bytes(1))
      #expect(try fixture.read("errors").isEmpty)
    }
  }

  @Test("output to a non-blocking pipe waits for the reader")
  func nonBlocking() async throws {
    // Given: a pipe that is full before anything is read
    let fixture = try ToolFixture()
    try fixture.write(String(repeating: "x", count: 300_000), "body")
    let pipe = Pipe()
    let writing = pipe.fileHandleForWriting.fileDescriptor
    #expect(fcntl(writing, F_SETFL, fcntl(writing, F_GETFL) | O_NONBLOCK) == 0)
    let process = Process()
    process.executableURL = try ToolFixture.executable()
    process.arguments = ["get", "-q", "-o", "-", "file://\(fixture.path)/body", "--cache-dir", fixture.cache]
    process.standardOutput = pipe.fileHandleForWriting
    let (ends, end) = AsyncStream<Int32>.makeStream()
    process.terminationHandler = { end.yield($0.terminationStatus) }
    try process.run()
    try pipe.fileHandleForWriting.close()

    // When
    let reading = pipe.fileHandleForReading
    let bytes: Data? = await withCheckedContinuation { result in
      DispatchQueue.global().async { result.resume(returning: try? reading.readToEnd()) }
    }

    // Then
    #expect(await ends.first { _ in true } == 0)
    #expect(bytes?.count == 300_000)
  }

  @Test("a folder that cannot be created ends the command before the first load")
  func folderInTheWay() async throws {
    try await withOrigin { origin in
      // Given
      let fixture = try ToolFixture()
      try fixture.write("in the way", "file")

      // When
      let run = try await fixture.etagere("get", origin.url("/a").absoluteString, "-o", "file/")

      // Then
      #expect(run.status == 73)
      #expect(run.errors.count == 1)
      #expect(run.errors.first?.hasPrefix("etagere-cli: cannot create folder 'file/': ") == true)
      #expect(origin.counters.requests == 0)
    }
  }
}
#endif
