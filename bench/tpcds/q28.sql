SELECT *
FROM (
    SELECT avg(ss_list_price) AS b1_price, count(ss_list_price) AS b1_count,
        count(DISTINCT ss_list_price) AS b1_distinct
    FROM store_sales
    WHERE ss_quantity BETWEEN 0 AND 5
        AND (ss_list_price BETWEEN 107 AND 117 OR ss_coupon_amt BETWEEN 1319 AND 2319
            OR ss_wholesale_cost BETWEEN 60 AND 80)
) AS b1, (
    SELECT avg(ss_list_price) AS b2_price, count(ss_list_price) AS b2_count,
        count(DISTINCT ss_list_price) AS b2_distinct
    FROM store_sales
    WHERE ss_quantity BETWEEN 6 AND 10
        AND (ss_list_price BETWEEN 23 AND 33 OR ss_coupon_amt BETWEEN 825 AND 1825
            OR ss_wholesale_cost BETWEEN 43 AND 63)
) AS b2, (
    SELECT avg(ss_list_price) AS b3_price, count(ss_list_price) AS b3_count,
        count(DISTINCT ss_list_price) AS b3_distinct
    FROM store_sales
    WHERE ss_quantity BETWEEN 11 AND 15
        AND (ss_list_price BETWEEN 74 AND 84 OR ss_coupon_amt BETWEEN 4381 AND 5381
            OR ss_wholesale_cost BETWEEN 57 AND 77)
) AS b3
LIMIT 100
