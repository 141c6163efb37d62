#if Tool
import Etagere
import Foundation
import LoopbackOrigin
import Testing

@Suite("etagere get -o: where the bytes go", .timeLimit(.minutes(30)))
struct OutputTests {
  @Test("-o FILE writes the body, byte for byte, over what was there")
  func file() async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      origin.setRoute("/a.bin", Route(bytes(200_000)))
      try place.write("old, and not as long", "target")

      // When
      let run = try await place.etagere("get", origin.url("/a.bin").absoluteString, "-o", "target")

      // Then
      #expect(run.status == 0)
      #expect(try place.read("target") == bytes(200_000))
    }
  }

  @Test("-o FOLDER/ is made, and names that collide get numbers")
  func collisions() async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      let paths = ["/1/a.png", "/2/a.png", "/3/a.png", "/4/plain", "/5/plain", "/", "/6/sp%20ace%2Fslash"]
      for (index, path) in paths.enumerated() { origin.setRoute(path, Route(bytes(10 + index, seed: index))) }

      // When
      let urls = paths.map { origin.url($0).absoluteString }
      let run = try await place.run(
        ["get", "--json", "--parallel", "1", "-o", "new/folder/", "--cache-dir", place.cache] + urls)

      // Then
      #expect(run.status == 0)
      #expect(run.complaints.isEmpty)
      let names = try run.documents(LoadDocument.self).map { $0.file.map { URL(filePath: $0).lastPathComponent } }
      #expect(names == ["a.png", "a-2.png", "a-3.png", "plain", "plain-2", "resource-6", "sp ace_slash"])
      for (index, name) in names.enumerated() {
        #expect(try place.read("new/folder/\(#require(name))") == bytes(10 + index, seed: index))
      }
    }
  }

  @Test("several URLs make -o a folder, and so does a folder that is there")
  func folders() async throws {
    // Given
    let place = try Workplace()
    try FileManager.default.createDirectory(atPath: place.path + "/there", withIntermediateDirectories: false)

    // When
    let several = try await place.etagere("get", "data:,a", "data:,b", "-o", "several")
    let one = try await place.etagere("get", "data:,c", "-o", "there")

    // Then
    #expect(several.status == 0)
    #expect(one.status == 0)
    #expect(try place.read("several/resource-1") == Data("a".utf8))
    #expect(try place.read("several/resource-2") == Data("b".utf8))
    #expect(try place.read("there/resource-1") == Data("c".utf8))
  }

  @Test("-o - puts the body, exactly, on standard output, and the line on standard error", arguments: [false, true])
  func standardOutput(asJSON: Bool) async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      let body = bytes(300_000) + Data("\n\r\n\0".utf8)
      origin.setRoute("/a", Route(body))
      let url = origin.url("/a").absoluteString

      // When
      let run = try await place.run(
        ["get", url, "-o", "-", "--cache-dir", place.cache] + (asJSON ? ["--json"] : []))

      // Then
      #expect(run.status == 0)
      #expect(run.output == body)
      #expect(run.complaints.count == 1)
      #expect(run.complaints.first?.hasPrefix("network        200 ") == true)
    }
  }

  @Test("--json prints a document of one line for each resource, those that failed too")
  func json() async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      origin.setRoute("/a", Route(bytes(1_234), etag: "v1"))
      let (good, bad) = (origin.url("/a").absoluteString, origin.url("/missing").absoluteString)

      // When
      let run = try await place.etagere("get", "--json", "--parallel", "1", good, bad)

      // Then
      let documents = try run.documents(LoadDocument.self)
      #expect(documents.map(\.url) == [good, bad])
      #expect(documents.map(\.status) == [200, 404])
      #expect(documents.map(\.bytes) == [1_234, nil])
      #expect(documents[0].error == nil)
      #expect(documents[1].error?.code == "unacceptableStatus")
      #expect(documents[1].error?.exitStatus == 22)
      #expect(documents[1].error.map { ["etagere: \($0.message)"] } == run.complaints)
      #expect(run.status == 22)
    }
  }

  @Test("an output that can't be written is said, and the cache keeps the answer", arguments: ["file/below", "missing/below"])
  func unwritable(_ target: String) async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      try place.write("in the way", "file")
      origin.setRoute("/a", Route(bytes(10), fields: [.cacheControl: "max-age=3600"]))
      let url = origin.url("/a").absoluteString

      // When
      let run = try await place.etagere("get", url, "-o", target)

      // Then
      #expect(run.status == 23)
      #expect(run.lines.isEmpty)
      #expect(run.complaints.count == 1)
      #expect(run.complaints.first?.contains("/\(target): can't be written: No") == true)
      #expect(try await place.etagere("get", "--policy", "cache-only", url).status == 0)
    }
  }

  @Test("a folder that can't be made ends the command before anything is loaded")
  func folderInTheWay() async throws {
    try await withOrigin { origin in
      // Given
      let place = try Workplace()
      try place.write("in the way", "file")

      // When
      let run = try await place.etagere("get", origin.url("/a").absoluteString, "-o", "file/")

      // Then
      #expect(run.status == 23)
      #expect(run.complaints.count == 1)
      #expect(run.complaints.first?.hasPrefix("etagere: file/: the folder can't be made: ") == true)
      #expect(origin.counters.requests == 0)
    }
  }
}
#endif
