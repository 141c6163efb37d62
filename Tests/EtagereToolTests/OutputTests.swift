#if Tool
import Etagere
import Foundation
import LoopbackOrigin
import Testing

@Suite("etagere get --output", .timeLimit(.minutes(30)))
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
      #expect(documents[1].error.map { ["etagere: \($0.message)"] } == run.errors)
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
      #expect(run.errors.first?.contains("/\(target)': No") == true)
      #expect(try await fixture.etagere("get", "--policy", "cache-only", url).status == 0)
    }
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
      #expect(run.errors.first?.hasPrefix("etagere: cannot create folder 'file/': ") == true)
      #expect(origin.counters.requests == 0)
    }
  }
}
#endif
