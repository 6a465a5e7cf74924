#include "comparison/entrants.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "scalecom/core/error.h"
#include "scalecom/methods/method.h"

namespace comparison {
namespace {

using scalecom::core::UsageError;

std::vector<std::string> labels(const std::vector<Entrant>& entrants) {
  std::vector<std::string> labels;
  for (const Entrant& entrant : entrants) labels.push_back(entrant.label);
  return labels;
}

TEST(Entrants, APieceWithAnEqualsSignBelongsToTheMethodBefore) {
  EXPECT_EQ(labels(parse_methods("dense,scalecom,rate=50,beta=1,half,values=bf16")),
            (std::vector<std::string>{"dense", "scalecom,rate=50,beta=1", "half,values=bf16"}));
}

TEST(Entrants, ANameAloneIsTheUsualSetting) {
  EXPECT_EQ(parse_methods("scalecom").front().spec, "scalecom,rate=100,beta=0.1");
  EXPECT_EQ(parse_methods("topk").front().spec, "topk,rate=100");
  EXPECT_EQ(parse_methods("gtopk").front().spec, "gtopk,rate=100");
  EXPECT_EQ(parse_methods("dgc").front().spec, "dgc,rate=1000");
  EXPECT_EQ(parse_methods("powersgd").front().spec, "powersgd,rank=4");
  EXPECT_EQ(parse_methods("dense").front().spec, "dense");
  EXPECT_EQ(parse_methods("scalecom,rate=7").front().spec, "scalecom,rate=7");
}

// The same method under two names is compared with itself, if somebody wants it.
TEST(Entrants, ALabelStandsOnceAndNotASpec) {
  EXPECT_EQ(parse_methods("topk,topk,rate=100").size(), 2U);
}

TEST(Entrants, AllIsEveryMethodAndTheControl) {
  const std::vector<std::string> all = labels(parse_methods("all"));
  for (const std::string& name : scalecom::methods::names()) {
    EXPECT_EQ(std::count(all.begin(), all.end(), name), 1) << name;
  }
  EXPECT_EQ(std::count(all.begin(), all.end(), "scalecom,select=random"), 1);
  EXPECT_EQ(all.size(), scalecom::methods::names().size() + 1);
}

TEST(Entrants, MistakesAreRefused) {
  for (const char* const list :
       {"", "nope", "dense,,half", "rate=3", "dense,rate=3", "scalecom,beta=2", "dense,dense",
        "all,dense", "scalecom,rate=3,rate=4", "dense,"}) {
    EXPECT_THROW(parse_methods(list), UsageError) << list;
  }
}

TEST(Entrants, AWarmupIsAShareOfTheStepsUnlessItIsGiven) {
  EXPECT_EQ(with_warmup("scalecom,rate=50", 0.1, 1250), "scalecom,rate=50,warmup=125");
  EXPECT_EQ(with_warmup("scalecom", 0.1, 1255), "scalecom,warmup=126");
  EXPECT_EQ(with_warmup("scalecom,warmup=3", 0.1, 1250), "scalecom,warmup=3");
  EXPECT_EQ(with_warmup("scalecom", 0, 1250), "scalecom,warmup=0");
  EXPECT_EQ(with_warmup("dense", 0.1, 1250), "dense");
}

}  // namespace
}  // namespace comparison
