#include "comparison/report.h"

#include <gtest/gtest.h>

#include "tests/comparison/planned.h"

namespace comparison {
namespace {

using nlohmann::ordered_json;

class Report : public testing::Test {
 protected:
  Report() : plan_(small_plan(folder_)), records_(plan_), runs_(runs_of(plan_, 2048)) {
    records_.write_measured(plan_.entrants[0], figures_of(plan_.entrants[0], "n"));
    records_.write_measured(plan_.entrants[1], figures_of(plan_.entrants[1], "log n"));
    pretend(runs_[0], 90);
    pretend(runs_[1], 89.5);
    pretend(runs_[2], 91);
    pretend(runs_[3], 91.25);
    pretend(runs_[4], 80);
    records_.write_failure(runs_[5], "the loss is not finite");
    report_ = report_of(plan_, records_, runs_);
  }

  train::Folder folder_;
  Plan plan_;
  Records records_;
  std::vector<PlannedRun> runs_;
  ordered_json report_;
};

TEST_F(Report, HasTheKeysThatAreFixed) {
  ASSERT_EQ(report_["rows"].size(), 6U);
  for (const ordered_json& row : report_["rows"]) {
    for (const char* const key :
         {"method", "learners", "seed", "metric", "value", "bytes_per_rank_step", "max_rank_bytes",
          "effective_rate", "ops_per_element", "ns_per_element", "copy_ns_per_element",
          "peak_bytes"}) {
      EXPECT_TRUE(row.contains(key)) << key;
    }
  }
  EXPECT_EQ(report_["growth"], (ordered_json{{"dense", "n"}, {"scalecom", "log n"}}));
}

TEST_F(Report, TakesFiguresFromRunsAndMeasurements) {
  const ordered_json& row = report_["rows"][3];
  EXPECT_EQ(row["method"], "scalecom");
  EXPECT_EQ(row["spec"], "scalecom,rate=100,beta=0.1,warmup=4");
  EXPECT_EQ(row["learners"], 4);
  EXPECT_EQ(row["value"], 91.25);
  EXPECT_EQ(row["max_rank_bytes"], 2000);
  EXPECT_EQ(row["ns_per_element"], 1.5);
  EXPECT_EQ(row["copy_ns_per_element"], 0.5);
  EXPECT_EQ(row["ops_per_element"], nullptr);
  EXPECT_EQ(row["bytes_per_rank_step"], 1000);
  EXPECT_EQ(row["effective_rate"], 12.5);
  EXPECT_EQ(row["peak_bytes"], 3'000'000);
  EXPECT_EQ(row["seconds"], 1.5);
  EXPECT_EQ(row["seed"], 1);
  EXPECT_EQ(row["steps"], 40);
  EXPECT_EQ(row["batch"], runs_[3].config.batch);
}

TEST_F(Report, ComparesWithDenseOfAsManyLearners) {
  EXPECT_EQ(report_["rows"][0]["against_dense"], 0);
  EXPECT_EQ(report_["rows"][1]["against_dense"], -0.5);
  EXPECT_EQ(report_["rows"][3]["against_dense"], 0.25);
}

TEST_F(Report, ARunThatDivergedHasNoValue) {
  const ordered_json& row = report_["rows"][5];
  EXPECT_TRUE(row["large_batch"].get<bool>());
  EXPECT_EQ(row["value"], nullptr);
  EXPECT_EQ(row["against_dense"], nullptr);
  EXPECT_EQ(row["failure"], "the loss is not finite");
}

TEST_F(Report, IsShownAsTables) {
  const std::vector<Table> tables = tables_of(report_);
  ASSERT_EQ(tables.size(), 3U);
  EXPECT_EQ(tables[0].rows[2],
            (std::vector<std::string>{"scalecom", "log n", "-", "1.50", "3.0x", "4.1", "12.5x",
                                      "91.25 (+0.25)", "diverged"}));
  EXPECT_EQ(tables[0].rows[1].back(), "80.00");
  EXPECT_EQ(tables[0].rows[0].back(), "12 learners, large batch");
  EXPECT_EQ(tables[1].rows, (std::vector<std::vector<std::string>>{
                                {"method", "n = 2"}, {"dense", "77"}, {"scalecom", "77"}}));
  EXPECT_EQ(tables[2].rows.size(), 7U);
  EXPECT_EQ(tables[2].rows[4],
            (std::vector<std::string>{"scalecom,rate=100,beta=0.1,warmup=4", "4", "40",
                                      "91.25 (+0.25)", "1000", "12.5x", "3 MB", "1.5"}));
  for (const Table& table : tables) {
    for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.rows.front().size());
  }
}

TEST_F(Report, HasNoColumnForALargeBatchThatIsNotAskedFor) {
  plan_.large_batch = 1;
  const auto runs = runs_of(plan_, 2048);
  const std::vector<Table> tables = tables_of(report_of(plan_, records_, runs));
  EXPECT_EQ(tables[0].rows[0].back(), "4 learners");
}

TEST_F(Report, IsWrittenAsMarkdown) {
  const std::vector<Table> tables{{"Title", {{"method", "x"}, {"dense", "1"}}}};
  EXPECT_EQ(to_markdown(tables), "Title\n\n| method | x |\n| --- | ---: |\n| dense | 1 |\n");
}

}  // namespace
}  // namespace comparison
