import Testing

@testable import PhotoList

@Suite("Load statistics")
struct LoadStatisticsTests {
  @Test("the mean is in milliseconds, and nil without loads")
  func mean() {
    #expect(LoadStatistics([.milliseconds(1), .milliseconds(2), .microseconds(4_500)]).mean == 2.5)
    #expect(LoadStatistics([]).mean == nil && LoadStatistics([]).percentile(0.5) == nil)
  }

  @Test(
    "a percentile is the shortest time that a share of the loads did not exceed",
    arguments: [(0, 1.0), (0.05, 1), (0.051, 2), (0.5, 10), (0.95, 19), (0.951, 20), (1, 20)])
  func percentile(share: Double, milliseconds: Double) {
    let durations = (1...20).reversed().map { Duration.milliseconds($0) }
    #expect(LoadStatistics(durations).percentile(share) == milliseconds)
  }
}
