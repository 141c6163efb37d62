#if Service
import CacheTesting
import Dispatch
import Foundation
import HTTPTypes
import ImageService
import Testing

@Suite("The time limit of a result")
struct DeadlineTests {
  @Test("images are made beside the cooperative pool, unless the configuration has an executor")
  func executor() throws {
    #expect(try ServiceFixture().service.manager.configuration.executor is ProcessingExecutor)
    let own = ProcessingExecutor(width: 1)
    let fixture = try ServiceFixture { $0.cache.executor = own }
    #expect(fixture.service.manager.configuration.executor as? ProcessingExecutor === own)
  }

  @Test("a result gets 504 at its limit while codecs run, also if it still waits for a processor")
  func running() async throws {
    // Given a processor that is occupied
    let queue = DispatchQueue(label: "occupied")
    queue.suspend()
    defer { queue.resume() }
    let fixture = try ServiceFixture {
      $0.limits.timeout = .seconds(10)
      $0.cache.executor = ProcessingExecutor(queue: queue)
      $0.cache.maximumConcurrentTransforms = 1
    }
    for name in ["a", "b", "c"] {
      let source = "https://photos.example.com/\(name)"
      try fixture.serve(try DrawnImage.png(8, 8), at: source)
      // When a request reaches its limit
      async let served = fixture.get("width=4", of: source)
      await fixture.clock.sleepers(1)
      fixture.clock.advance(by: .seconds(11))
      // Then it has a response
      #expect(try await served.status == 504)
    }
  }
}
#endif
